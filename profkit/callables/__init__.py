"""Callables of a Python process: measured in place, compared, swept, and recorded with ncu."""
