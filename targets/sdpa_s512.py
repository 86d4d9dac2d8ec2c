"""Attention at S=512: torch's SDPA by each backend, and a kernel of our own."""

from __future__ import annotations

from sdpa import Shape, attention

target = attention(
    "sdpa_s512", Shape(batch=32, heads=8, length=512, dim=64, dtype="float16", causal=False)
)

if __name__ == "__main__":
    target.main()
