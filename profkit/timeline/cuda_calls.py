"""What CUDA calls do, by words in their names."""

from collections.abc import Mapping, Sequence

from profkit.core.yaml_files import shipped_yaml

ALLOCATION, LAUNCH, COPY = "memory allocation", "launch call", "copy call"
SYNCHRONIZATION, OTHER = "synchronization", "CUDA call"
WORDS: Mapping[str, Sequence[str]] = shipped_yaml("profkit.timeline", "cuda_calls.yaml")

TO_DEVICE = "host to device"
SMALL_COPY = 64 << 10
"""Bytes up to which a copy is about its latency: the CUDA driver stages pageable copies to the
device up to this size and returns ("API synchronization behavior" in the CUDA documentation)."""


def call_kind(name: str) -> str:
    """What a call does; OTHER for none of these."""
    kinds = (kind for kind, words in WORDS.items() if any(word in name for word in words))
    return next(kinds, OTHER)


def is_synchronous(name: str) -> bool:
    """Whether a call that copies is none of those that return at once."""
    return "Memcpy" in name and "Async" not in name
