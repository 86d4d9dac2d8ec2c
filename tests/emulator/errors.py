"""What the emulator raises."""

from __future__ import annotations


class Fault(Exception):
    """What is wrong with a kernel, or with how it was launched."""


class NotEmulated(Exception):
    """A kernel uses an instruction that the emulator does not know."""
