"""Kernels built again with other options, constants and launches: what `profkit try` tries."""
