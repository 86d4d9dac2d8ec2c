"""Library kernels, recognized by name: which library has them, and what their caller can change."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from profkit.core.yaml_files import shipped_yaml


@cache
def library_of(kernel: str) -> str | None:
    """The library that a kernel of this demangled name belongs to; None for all others."""
    name = kernel.removeprefix("void ")
    return next((library for library, begin in _patterns() if begin.match(name)), None)


def caller_actions(library: str, category: str) -> tuple[str, ...]:
    """What the caller of a library's kernel can change about a finding of this category."""
    document = _document()
    actions = document["actions"]
    own = document["actions_of"].get(library)
    return tuple(own or actions.get(category) or actions["default"])


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    libraries = _document()["libraries"].items()
    return tuple((name, re.compile("|".join(patterns))) for name, patterns in libraries)


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = shipped_yaml("profkit.rules", "libraries.yaml")
    return document
