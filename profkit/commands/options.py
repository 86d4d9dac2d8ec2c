"""Options that several verbs take, spelled once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from profkit.commands.formats import format_of
from profkit.commands.kinds import (
    ARCHIVE,
    CEILINGS,
    DATABASE,
    LATENCIES,
    OUTPUT,
    REPORT,
    RULES,
    TARGET,
    TEXT,
    TIMELINE,
    Kind,
    refuse_other_kinds,
)
from profkit.core.errors import BadInput, ProfkitError, UsageError
from profkit.core.regular_file import open_regular
from profkit.ui.picture import PICTURES

if TYPE_CHECKING:
    from rich.console import RenderableType

_RECORDINGS = (b"NVR\0", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0")
_OUTPUTS = {"output", "out", "plot", "badge"}
_ELSEWHERE = "write into a folder that is there"
_WORDS_AFTER = "profkit.words_after_the_dashes"
_WORDS = {"targets", "words", "program"}


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
    typer.Option("--kernel", metavar="REGEX", help="Only kernels whose demangled name matches."),
]
FORMAT = typer.Option("--format", help="How to write it.")
NUMBERS_FORMAT = copy(FORMAT)
"""For the same formats in another order, which typing's cache would replace by the first."""


def output_option(help: str) -> Any:
    """The option -o, which every verb that writes has."""
    return typer.Option("-o", "--output", metavar="FILE", help=help, callback=writable)


OutputOption = Annotated[Path | None, output_option("Write there instead of stdout.")]
ReportArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A report (.ncu-rep, .ncu-repz) or a run.")
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="PATH",
        help="Your rules too, a file or folder; one of a shipped rule's name replaces it.",
    ),
]
DisableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--disable",
        metavar="RULE",
        help="Leave out a rule, or a category of rules; may be repeated.",
    ),
]


_TOLD_BY_THE_READER = frozenset({ARCHIVE, DATABASE})  # a report in a wrong guise, which it explains
_REPORTS = ("a report", _TOLD_BY_THE_READER | {REPORT})
_RECORDINGS_READ = ("a report or a timeline", _TOLD_BY_THE_READER | {REPORT, TIMELINE})
_TIMINGS = ("saved latencies", frozenset({LATENCIES, TEXT}))
_OWN_RULES = ("a rules file", frozenset({RULES, TEXT}))
_ANY_TEXT = frozenset({TEXT, LATENCIES, RULES, CEILINGS, OUTPUT})
_TARGETS = ("a target script (.py)", frozenset({TARGET}))
_WANTED: Mapping[tuple[str, str], tuple[str, Collection[Kind]]] = {
    ("analyze", "paths"): _RECORDINGS_READ,
    ("roofline", "paths"): _REPORTS,
    ("roofline", "latency"): ("saved latencies", frozenset({LATENCIES, TEXT, REPORT})),
    ("roofline", "ceilings"): ("measured roofs", frozenset({CEILINGS, TEXT})),
    ("checklist", "path"): _REPORTS,
    ("report", "path"): _REPORTS,
    ("source", "path"): _REPORTS,
    ("metrics", "path"): _REPORTS,
    ("diff", "before"): _REPORTS,
    ("diff", "after"): _REPORTS,
    ("compare", "a"): _TIMINGS,
    ("compare", "b"): _TIMINGS,
    ("time", "from_file"): _TIMINGS,
    ("audit", "path"): ("a file of claims", _ANY_TEXT),
    ("explain", "on"): _RECORDINGS_READ,
    ("check", "path"): _OWN_RULES,
    ("import", "files"): ("raw latencies", _ANY_TEXT | {TARGET}),
    ("time", "targets"): _TARGETS,
    ("optimize", "words"): _TARGETS,
    ("calibrate", "target"): _TARGETS,
    ("run", "target"): _TARGETS,
    ("profile", "program"): ("a target script or a program", _ANY_TEXT | {TARGET}),
}
"""What files the parameters of verbs are to be."""


class Reading(TyperCommand):
    """A verb that reads only files of its kind, never writes over one of them, and writes a file in
    the format of its name. `pictures` are endings that it takes for drawings."""

    pictures: tuple[str, ...] = ()

    def invoke(self, ctx: Any) -> Any:
        """Run it; raises UsageError and BadInput first for what it can't read or write."""
        for name, value in self._given(ctx).items():
            self._refuse_other_files(name, value)
        output = ctx.params.get("output")
        if output is not None:
            _refuse_to_overwrite(output, ctx.params)
            self._choose_format(ctx, output)
        return super().invoke(ctx)

    def _given(self, ctx: Any) -> Mapping[str, Any]:
        """The parameters as far as they are profkit's own."""
        return dict(ctx.params)

    def _refuse_other_files(self, name: str, value: Any) -> None:
        wanted = _OWN_RULES if name in {"own", "rules"} else _WANTED.get((str(self.name), name))
        if wanted is None or value is None:
            return
        for word in value if isinstance(value, list | tuple) else [value]:
            refuse_other_kinds(Path(word), *wanted)

    def _choose_format(self, ctx: Any, output: Path) -> None:
        """Set the format that the file's name asks for, unless one was asked for in words."""
        if output.suffix.lower() in self.pictures:
            return
        formats: Sequence[str] = ["html"]  # what a verb without a choice writes
        if "format" in ctx.params:
            formats = _formats_of(self.callback)
        asked = ctx.params["format"] if is_given(ctx, "format") else None
        chosen = format_of(output, formats, asked, self.pictures)
        if chosen is not None and "format" in ctx.params:
            ctx.params["format"] = chosen


def is_given(context: Any, name: str) -> bool:
    """Whether the command line names a parameter; otherwise its value is the default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _formats_of(verb: Any) -> list[str]:
    """The formats that a verb's option takes: a literal, or a literal or None."""
    hint = get_type_hints(verb)["format"]
    words = [word for kind in (hint, *get_args(hint)) for word in get_args(kind)]
    return [word for word in words if isinstance(word, str)]


def _refuse_to_overwrite(output: Path, params: Mapping[str, Any]) -> None:
    if not output.exists():
        return
    for path in _paths(params, _OUTPUTS):
        if path.exists() and output.samefile(path):
            raise UsageError(f"{output}: is what is to be read", "write elsewhere")


def _paths(params: Mapping[str, Any], but: Collection[str]) -> Iterator[Path]:
    for name, value in params.items():
        values = value if isinstance(value, list | tuple) else [value]
        if name not in but:
            yield from (one for one in values if isinstance(one, Path))


class Drawing(Reading):
    """A verb whose output may be a picture."""

    pictures = PICTURES


class WithProgram(Reading):
    """A verb that heeds on which side of `--` a word was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever; the number of words after `--` stays in the context's `meta`."""
        after = args[args.index("--") + 1 :] if "--" in args else []
        ctx.meta[_WORDS_AFTER] = len(after)
        return super().parse_args(ctx, args)

    def _given(self, ctx: Any) -> Mapping[str, Any]:
        after = words_after_dashes(ctx)
        return {
            name: value[: len(value) - after] if name in _WORDS and value else value
            for name, value in ctx.params.items()
        }


def words_after_dashes(context: Any) -> int:
    """How many words a `WithProgram` verb got after `--`."""
    return int(context.meta[_WORDS_AFTER])


def put(text: str, output: Path | None) -> None:
    """Write text to a file or stdout; raises UsageError when the file can't be written."""
    if output is None:
        _print(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output}: can't be written ({error.strerror})", _ELSEWHERE) from None


def put_view(view: RenderableType, output: Path | None) -> None:
    """Write a view as text to a file or stdout."""
    from profkit.ui.terminal import rendered

    put(rendered(view, to_file=output is not None), output)


def width_of(output: Path | None) -> int:
    """Columns of what is written there."""
    from profkit.ui.terminal import console

    return console(to_file=output is not None).width


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def warn(message: object) -> None:
    """One line on stderr."""
    typer.echo(f"profkit: {message}", err=True)


def report_failures(failures: Sequence[ProfkitError]) -> None:
    """A line for each; raises typer.Exit of the gravest where there is one."""
    for failure in failures:
        warn(failure)
    if failures:
        raise typer.Exit(max(failure.exit_code for failure in failures))


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"can't write the output ({error.strerror})") from None


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
