"""Options that several verbs take, spelled once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from profkit.errors import BadInput, UsageError
from profkit.ingest.regular_file import open_regular

_RECORDINGS = (b"NVR\0", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0")
_OUTPUTS = {"output", "out", "plot", "badge"}
_ELSEWHERE = "write into a folder that is there"
_WORDS_AFTER = "profkit.words_after_the_dashes"


def writable(output: Path | None) -> Path | None:
    """The same path; raises UsageError, before any work, for one that can't or shouldn't be."""
    if output is None:
        return None
    if output.is_dir():
        raise UsageError(f"{output}: can't be written (it is a folder)", _ELSEWHERE)
    if not output.parent.is_dir():
        raise UsageError(f"{output}: can't be written (No such file or directory)", _ELSEWHERE)
    if _is_recording(output):
        raise UsageError(f"{output}: is a recording", "write elsewhere, or remove it first")
    return output


def _is_recording(path: Path) -> bool:
    if not path.is_file():  # a pipe, say
        return False
    try:
        with open_regular(path) as file:
            return file.read(len(max(_RECORDINGS, key=len))).startswith(_RECORDINGS)
    except (OSError, BadInput):
        return False


KernelOption = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="REGEX",
        help="Only kernels whose demangled name matches.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write there instead of stdout.",
        callback=writable,
        show_default=False,
    ),
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="PATH",
        help="Your rules too, a file or folder; one of a shipped rule's name replaces it.",
        show_default=False,
    ),
]
DisableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--disable",
        metavar="RULE",
        help="Leave out a rule, or a category of rules; may be repeated.",
        show_default=False,
    ),
]


class Reading(TyperCommand):
    """A verb that never writes over a file that it was given to read."""

    def invoke(self, ctx: Any) -> Any:
        """Run it; raises UsageError first where an output is one of the other paths."""
        output = ctx.params.get("output")
        if output is not None and output.exists():
            for path in _paths(ctx.params, _OUTPUTS):
                if path.exists() and output.samefile(path):
                    raise UsageError(f"{output}: is what is to be read", "write elsewhere")
        return super().invoke(ctx)


def _paths(params: Mapping[str, Any], but: Collection[str]) -> Iterator[Path]:
    for name, value in params.items():
        values = value if isinstance(value, list | tuple) else [value]
        if name not in but:
            yield from (one for one in values if isinstance(one, Path))


class WithProgram(Reading):
    """A verb that heeds on which side of `--` a word was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever; the number of words after `--` stays in the context's `meta`."""
        after = args[args.index("--") + 1 :] if "--" in args else []
        ctx.meta[_WORDS_AFTER] = len(after)
        return super().parse_args(ctx, args)


def words_after_dashes(context: Any) -> int:
    """How many words a `WithProgram` verb got after `--`."""
    return int(context.meta[_WORDS_AFTER])


def put(text: str, output: Path | None) -> None:
    """Write text to a file or stdout; raises UsageError when the file can't be written."""
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output}: can't be written ({error.strerror})", _ELSEWHERE) from None


_INTERRUPTED = 130
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def interruptible(left: str = "nothing was kept") -> Iterator[None]:
    """Ctrl-C, and signals that ask to end, end what is inside in order and the command with 130.

    `left` says what is there then. Signals that nohup and such turned off stay off. What fails
    after such a signal failed for it: an extension module that is being imported makes an
    ImportError of the interruption.
    """
    asked: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        asked.append(number)
        raise _Ended

    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        _end(left)
    except Exception:
        if not asked:
            raise
        _end(left)


def _end(left: str) -> NoReturn:
    typer.echo(f"profkit: interrupted; {left}", err=True)
    raise typer.Exit(_INTERRUPTED) from None


class _Ended(KeyboardInterrupt):
    """Not KeyboardInterrupt itself: one that passes through exec(), which making a dataclass calls,
    has Python end by SIGINT whoever caught it afterwards."""
