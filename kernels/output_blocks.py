"""Fills the marked blocks of pages with what the commands in them print.

A marked block is a fenced block right below a comment:

    <!-- output: first 9; with long_scoreboard; from spills 3 -->
    ```console
    $ profkit analyze run.ncu-rep
    (what it prints is written here)
    ```

A `console` block holds commands, each behind `$ `; they run in this process, in the repository's
root. A `pycon` block holds Python behind `>>> `; blocks of a page share their names. The comment
chooses lines, and `...` stands for what is left out: `first N` and `last N` lines, the paragraph
`with` a text (or N lines of it), N lines `from` the line with a text on. Without a choice all is
shown. A page stays in step with the wording of the output while the texts in comments are
names and not sentences; where none is met the first lines are shown, and `make docs` says so.

`<!-- file: PATH 10-25 -->` takes lines of a file instead.
"""

from __future__ import annotations

import doctest
import io
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from profkit.commands.cli import app
from profkit.ui import progress

ROOT = Path(__file__).parent.parent
WIDTH = 92  # columns: what the site shows without a scroll bar at 1400 px
LEFT_OUT = "..."
_FALLBACK = "first 12"  # where a wording that a choice rests on has changed
_BLOCK = re.compile(
    r"^<!-- (?P<kind>output|file)(?:: (?P<choice>.*?))? -->\n"
    r"```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def filled(page: str) -> str:
    """The page with all of its marked blocks filled."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return _BLOCK.sub(lambda block: _filled_block(block.groupdict(), names), page)


def blocks(page: str) -> list[str]:
    """The marked blocks of a page, as they are."""
    return [block.group() for block in _BLOCK.finditer(page)]


def fill_pages(pages: Iterable[Path]) -> None:
    """Fill the blocks of files, and write those that changed."""
    for path in pages:
        text = path.read_text(encoding="utf-8")
        try:
            new = filled(text)
        except Exception as error:
            error.add_note(f"in {path}")
            raise
        if new != text:
            path.write_text(new, encoding="utf-8")


@cache
def printed(command: str) -> str:
    """What a profkit command prints to a file, with no state of this user's and no progress."""
    program, *arguments = shlex.split(command)
    if program != "profkit":
        raise ValueError(f"only profkit's commands are run, not {command!r}")
    silent = patch.object(progress, "_SHOWN_AFTER", math.inf)
    with tempfile.TemporaryDirectory() as empty, chdir(ROOT), silent:
        environment: Mapping[str, str | None] = {
            "COLUMNS": str(WIDTH),
            "XDG_STATE_HOME": empty,
            "NO_COLOR": "1",
            "PROFKIT_LOCK_DIR": empty,
        }
        result = CliRunner(env=environment).invoke(app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return _ANSI.sub("", result.output)


def _filled_block(block: Mapping[str, str], names: dict[str, Any]) -> str:
    choice = block["choice"] or ""
    mark = f"<!-- {block['kind']}{': ' if choice else ''}{choice} -->"
    if block["kind"] == "file":
        lines = list(_file_lines(choice))
    elif block["language"] == "pycon":
        lines = list(_session_lines(block["body"], names))
    else:
        lines = list(_console_lines(block["body"], choice))
    body = "".join(f"{line.rstrip()}\n" for line in lines)
    return f"{mark}\n```{block['language']}\n{body}```"


def _console_lines(body: str, choice: str) -> Iterator[str]:
    for line in body.splitlines():
        if line.startswith("$ "):
            yield line
            lines = printed(line.removeprefix("$ ")).splitlines()
            try:
                yield from chosen(lines, choice)
            except ValueError as error:
                print(f"{line}: {error}; its first lines are shown", file=sys.stderr)
                yield from chosen(lines, _FALLBACK)


def _session_lines(body: str, names: dict[str, Any]) -> Iterator[str]:
    with chdir(ROOT), _Columns():
        for example in doctest.DocTestParser().get_examples(body):
            first, *more = example.source.splitlines()
            yield f">>> {first}"
            yield from (f"... {line}".rstrip() for line in more)
            shown = io.StringIO()
            with redirect_stdout(shown):
                exec(compile(example.source, "<page>", "single"), names)
            yield from shown.getvalue().splitlines()


def _file_lines(choice: str) -> list[str]:
    name, _, span = choice.rpartition(" ")
    first, last = (int(number) for number in span.split("-"))
    return (ROOT / name).read_text(encoding="utf-8").splitlines()[first - 1 : last]


def chosen(lines: Sequence[str], choice: str) -> list[str]:
    """The lines that a choice names, with `...` where some are left out in between.

    Raises ValueError for a choice that no line meets.
    """
    parts = [part.strip() for part in choice.split(";") if part.strip()]
    numbers = {number for part in parts for number in _line_numbers(lines, part)}
    if not parts:
        numbers = set(range(len(lines)))
    shown: list[str] = []
    before = -1
    for number in sorted(numbers):
        if number != before + 1:
            between = any(map(str.strip, lines[before + 1 : number]))
            shown += [LEFT_OUT] if between else [""] * bool(shown)
        shown.append(lines[number])
        before = number
    if any(map(str.strip, lines[before + 1 :])):
        shown.append(LEFT_OUT)
    return shown


def _line_numbers(lines: Sequence[str], part: str) -> range:
    how, _, rest = part.partition(" ")
    text, _, count = rest.rpartition(" ")
    if not count.isdigit():
        text, count = rest, ""
    if how == "first":
        return range(min(int(count), len(lines)))
    if how == "last":
        return range(max(len(lines) - int(count), 0), len(lines))
    place = next((number for number, line in enumerate(lines) if text in line), None)
    if place is None or how not in {"with", "from"}:
        raise ValueError(f"no line meets {part!r}")
    if how == "with":
        while place and lines[place - 1].strip():
            place -= 1
    end = place
    while end < len(lines) and (lines[end].strip() or (how == "from" and count)):
        end += 1
    return range(place, min(end, place + int(count)) if count else end)


class _Columns:
    """Output in Python as wide as that of commands."""

    def __enter__(self) -> None:
        self._before = os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = str(WIDTH)

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = self._before
