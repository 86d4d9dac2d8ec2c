"""Option values at random for any verb that reads files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from profkit.commands.cli import app

_VALUES = (
    "-1", "0", "1", "2", "0.5", "50%", "101%", "nan", "inf", "-inf", "1e999", "1e-400", "9" * 400,
    "x", "x" * 5000, "%", "*", "[", "(", "(a+)+$", "a,b", ",", "=", "\x1b[31m", "\u202e", "../../x",
    ".", "none", "json", "terminal", "markdown", "html", "brief", "1s", "0s", "9" * 12 + "h",
    "2 GB", "regression", "regression:nan%", "metric:duration>1e999", "metric:l2_busy>0", "H200",
    "us", "2026-13-45", "9999-12-31T23:00-12:00", "all", "auto", "/dev/full", "/nowhere/x.json",
    "x.html", "r.ncu-repz", "1:2", "1-2", "-", "--", "@", "True", "x.svg",
)  # fmt: skip


@cache
def _options(path: tuple[str, ...]) -> tuple[Any, ...]:
    """The options of a verb, or of one in a group: of the longest path that is one."""
    command: Any = typer.main.get_command(app)
    for word in path:
        found = getattr(command, "commands", {}).get(word)
        command = command if found is None else found
    return tuple(each for each in command.params if each.param_type_name == "option")


def with_options(words: Sequence[str], chance: random.Random) -> list[str]:
    """A command line with one to three options more, each with a value that it may not have."""
    options = _options(tuple(words[:2]))
    chosen = list(words)
    for option in chance.sample(options, min(len(options), chance.randint(1, 3))):
        name = chance.choice(option.opts)
        chosen += [name] if option.is_flag else [name, chance.choice(_VALUES)]
    return chosen
