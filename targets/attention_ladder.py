"""Every rung of the attention ladder beside torch's SDPA, at a shape from the command line."""

from __future__ import annotations

from sdpa import Shape, asked_shape, attention, ladder

options, shape = asked_shape(Shape(batch=32, heads=8, length=512, dim=64))
target = attention("attention_ladder", shape, {rung.name: rung.run for rung in ladder.RUNGS})

if __name__ == "__main__":
    target.main(options=options)
