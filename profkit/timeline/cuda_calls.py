"""What CUDA calls do, by words in their names."""

ALLOCATION, LAUNCH, COPY = "memory allocation", "launch call", "copy call"
SYNCHRONIZATION, OTHER = "synchronization", "CUDA call"
WORDS = {
    ALLOCATION: (
        "Malloc", "MemAlloc", "HostAlloc", "cudaFree", "MemFree", "MemCreate", "MemRelease",
    ),
    LAUNCH: ("Launch",),
    COPY: ("Memcpy", "Memset"),
    SYNCHRONIZATION: ("Synchronize", "EventQuery", "StreamQuery"),
}  # fmt: skip


def call_kind(name: str) -> str:
    """What a call does; OTHER for none of these."""
    kinds = (kind for kind, words in WORDS.items() if any(word in name for word in words))
    return next(kinds, OTHER)
