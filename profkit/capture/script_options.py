"""Options of a target script's own, which it needs before its target is made."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from profkit.core.errors import UsageError


def asked(options: argparse.ArgumentParser) -> argparse.Namespace:
    """The values of a script's own options on the command line.

    `options` is made with `add_help=False` and given to `Target.main` too. Where the script is run,
    words that are none of its options are left to `Target.main`; where profkit imports it there is
    nobody else to know them. Raises UsageError then for what is wrong, and makes `options.error`
    raise it.
    """
    if _is_run():
        return options.parse_known_args(without_dashes(sys.argv[1:]))[0]
    options.error = _refuse  # type: ignore[method-assign]
    known, left = options.parse_known_args()
    if left:
        names = " ".join(options.format_usage().removeprefix("usage:").split()[1:])
        raise UsageError(f"{_script()}: no option {left[0]}", f"use {names}" if names else "")
    return known


def without_dashes(words: Sequence[str]) -> list[str]:
    """A command line without its first `--`, which separates a script's options in profkit's."""
    first = words.index("--") if "--" in words else len(words)
    return [*words[:first], *words[first + 1 :]]


def _is_run() -> bool:
    """Whether the script that the command line is of is the program itself."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    return program is not None and Path(program).resolve() == Path(sys.argv[0]).resolve()


def _script() -> str:
    return Path(sys.argv[0]).name


def _refuse(message: str) -> NoReturn:
    raise UsageError(f"{_script()}: {message}", "see its --help")
