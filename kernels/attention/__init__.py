"""Attention, one idea a file: the ladder's kernels and what launches them."""
