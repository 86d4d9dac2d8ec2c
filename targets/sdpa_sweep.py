"""Attention by every backend, at a shape from the command line: --batch 2 --length 2048 ..."""

from __future__ import annotations

from sdpa import Shape, asked_shape, attention_by_backends

options, shape = asked_shape(Shape(batch=8, heads=16, length=1024, dim=64))
target = attention_by_backends("sdpa_sweep", shape)

if __name__ == "__main__":
    target.main(options=options)
