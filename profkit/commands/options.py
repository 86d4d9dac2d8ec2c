"""What the verbs share: parameters, files that they read and write, interruption."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from profkit.commands.kinds import RECORDINGS
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, UsageError
from profkit.core.integrity import MANIFEST
from profkit.core.output_file import check_free, output_file
from profkit.core.regular_file import open_regular
from profkit.core.text_files import read_json
from profkit.ui.picture import PICTURES
from profkit.ui.text import literal_lines, literal_output, one_line

T = TypeVar("T")

_FORMATS = {
    ".txt": ("terminal",),
    ".json": ("json",),
    ".md": ("markdown",),
    ".markdown": ("markdown",),
    ".html": ("html",),
    ".htm": ("html",),
    ".csv": ("csv",),
    ".png": (),
    ".svg": (),
    ".pdf": (),
}
"""Formats by ending, the first where several can be had; pictures are none."""
_UNUSUAL = (".markdown", ".htm")
OUTPUTS = {"file", "out", "badge", "perfetto"}
_FORMER = "out"  # the name, and the former flag, of what became --output, --save or --runs
_ELSEWHERE = "write into an existing folder"
_WORDS_AFTER = "profkit.words_after_the_dashes"
_WORDS = {"targets", "words", "program"}
_INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ended: 128 + SIGINT
INCONCLUSIVE = 3  # the exit code of `profkit --help`
_ENDING = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)


def plain_types(params: Any) -> Any:
    """The same parameters; those that are named, and flags, no longer show a type in the help."""
    for param in params:
        name = getattr(param, "metavar", None)
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif name and param.param_type_name == "argument":
            usage = name if param.required or name.startswith("[") else f"[{name}]"
            param.display_type_rich = lambda **_: None
            param.get_usage_pieces = lambda *_, usage=usage: [usage]
    return params


def choices_of(hint: Any) -> list[str]:
    """The words of a literal, or of a literal or None; [] for another type."""
    literals = (part for part in parts_of(hint) if get_origin(part) is Literal)
    return [word for literal in literals for word in get_args(literal)]


def parts_of(hint: Any) -> Iterator[Any]:
    """A type, the types that it is made of, and what these are annotated with."""
    yield hint
    for part in get_args(hint):
        yield from parts_of(part)


def format_of(
    output: Path, formats: Sequence[str], requested: str | None, pictures: Sequence[str] = ()
) -> str | None:
    """The format to write a file in; None where its name has no ending and none was requested.

    `pictures` are endings that the verb draws, which are no formats.

    Raises UsageError where the ending contradicts the format requested, or where none was requested
    and it is of no format that there is. Pipes and devices may have any name.
    """
    ending = output.suffix.lower()
    if not ending or (output.exists() and not output.is_file()):
        return requested
    candidates = _FORMATS.get(ending)
    if requested is None:
        for name in candidates or ():
            if name in formats:
                return name
        remedy = _file_names(*formats, pictures=pictures)
        raise UsageError(f"{output}: {ending} is not a format of this verb", remedy)
    if candidates is not None and requested not in candidates and ending != ".txt":
        message = f"{output}: its extension contradicts --format {requested}"
        raise UsageError(message, _file_names(requested))
    return requested


def _file_names(*formats: str, pictures: Sequence[str] = ()) -> str:
    endings = [
        ending
        for ending, names in _FORMATS.items()
        if names[:1] and names[0] in formats and ending not in _UNUSUAL
    ]
    endings += pictures
    return f"use {' or '.join(endings)}" if endings else "leave out --format or the extension"


def verb_of(context: Any) -> str:
    """The verb that a context is of, "rules score", whatever the program is started as."""
    verbs: list[str] = []
    while context is not None and context.parent is not None:
        verbs.insert(0, context.info_name)
        context = context.parent
    return " ".join(verbs)


def writable(output: Path | None) -> Path | None:
    """The same path; raises UsageError, before any work, for one that can't or shouldn't be."""
    if output is None:
        return None
    if str(output) == "-":
        raise UsageError("-: is not a file", "name a file; most verbs write to stdout without -o")
    if output.is_dir():
        raise UsageError(f"{output}: can't be written (it is a folder)", _ELSEWHERE)
    if not output.parent.is_dir():
        raise UsageError(f"{output}: can't be written (No such file or directory)", _ELSEWHERE)
    if _is_recording(output):
        raise UsageError(f"{output}: is a recording", "write to another file, or remove it first")
    if _is_in_manifest(output):
        raise UsageError(f"{output}: belongs to a recorded run", "write to another file")
    return output


def _is_recording(path: Path) -> bool:
    if not path.is_file():  # a pipe, say
        return False
    try:
        with open_regular(path) as file:
            return file.read(len(max(RECORDINGS, key=len))).startswith(RECORDINGS)
    except (OSError, BadInput):
        return False


def _is_in_manifest(path: Path) -> bool:
    """Whether a file is the manifest of a run or recording, or listed there."""
    manifest = path.parent / MANIFEST
    if not path.is_file() or not manifest.is_file():
        return False
    try:
        document = read_json(manifest)
    except BadInput:
        return False
    files = document.get("files") if isinstance(document, dict) else None
    return isinstance(files, dict) and path.name in {MANIFEST, *files}


class Verbs(TyperGroup):
    """A group of verbs."""

    def get_params(self, ctx: Any) -> Any:
        """Its options, without types."""
        return plain_types(super().get_params(ctx))


class Reading(TyperCommand):
    """A verb that reads only files of its kind, never writes over one of them, and writes a file in
    the format of its name. `pictures` are endings that it takes for drawings."""

    pictures: tuple[str, ...] = ()

    def get_params(self, ctx: Any) -> Any:
        """Its options and arguments, without types."""
        return plain_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, with former spellings of options replaced; the number of words after `--` is saved
        in the context's `meta`."""
        own = args.index("--") if "--" in args else len(args)
        ctx.meta[_WORDS_AFTER] = max(0, len(args) - own - 1)
        new = next((each.opts[-1] for each in self.params if each.name == _FORMER), f"--{_FORMER}")
        words = [re.sub(rf"^--{_FORMER}(?==|$)", new, word) for word in args[:own]]
        return super().parse_args(ctx, [*words, *args[own:]])

    def invoke(self, ctx: Any) -> Any:
        """Run it; raises UsageError and BadInput first for what it can't read or write."""
        verb: Any = self.callback
        for name, kind in verb.inputs.items():
            words = _listed(ctx.params[name])
            after = words_after_dashes(ctx) if name in _WORDS else 0
            for word in words[: len(words) - after]:
                kind.check(Path(word))
        force = ctx.params.get("force", False)
        _refuse_to_overwrite(ctx.params, force=force)
        output = ctx.params.get("file")
        if output is not None and output.suffix.lower() not in self.pictures:
            self._choose_format(ctx, output)
        if ctx.params.get("format") == "brief":
            return self._in_brief(ctx, output, force=force)
        return super().invoke(ctx)

    def _in_brief(self, ctx: Any, output: Path | None, *, force: bool) -> Any:
        """Run it with the first page of what a terminal would show, also where it exits."""
        from profkit.ui.brief import COLUMNS, first_page

        os.environ["COLUMNS"] = str(COLUMNS)
        ctx.params |= {"format": "terminal"} | ({"file": None} if output else {})
        text = io.StringIO()
        try:
            with redirect_stdout(text):
                return super().invoke(ctx)
        finally:
            put(first_page(text.getvalue()), output, force=force)

    def _choose_format(self, ctx: Any, output: Path) -> None:
        """Set the format that the file's name asks for, unless one was asked for in words."""
        if "format" not in ctx.params:  # a verb without a choice writes a page
            format_of(output, ["html"], None, self.pictures)
            return
        formats = choices_of(get_type_hints(self.callback)["format"])
        requested = ctx.params["format"] if is_explicit(ctx, "format") else None
        if chosen := format_of(output, formats, requested, self.pictures):
            ctx.params["format"] = chosen


def is_explicit(context: Any, name: str) -> bool:
    """Whether the command line names a parameter; otherwise its value is the default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [] if value is None else [value]


def _refuse_to_overwrite(params: Mapping[str, object], *, force: bool) -> None:
    """Raise UsageError for an output file that is an input too, another output, or there already
    without `force`."""
    outputs = [path for name in sorted(OUTPUTS) if isinstance(path := params.get(name), Path)]
    for output in outputs:
        for name in params.keys() - OUTPUTS if output.is_file() else ():
            for path in _listed(params[name]):
                if isinstance(path, Path) and path.exists() and output.samefile(path):
                    raise UsageError(f"{output}: is an input file", "write to another file")
    resolved = [output.resolve() for output in outputs]
    for number, output in enumerate(outputs):
        if resolved[number] in resolved[:number] and not output.is_char_device():
            raise UsageError(f"{output}: is named for two outputs", "name a file for each")
        if not output.is_dir():  # of runs, say
            check_free(output, force=force)


class Drawing(Reading):
    """A verb whose output may be a picture."""

    pictures = PICTURES


def words_after_dashes(context: Any) -> int:
    """How many words a verb got after `--`."""
    return int(context.meta[_WORDS_AFTER])


@contextmanager
def written(path: Path, *, force: bool) -> Iterator[Path]:
    """A file to write, as `output_file`; signals leave nothing of it."""
    with interruptible(), output_file(path, force=force) as temporary:
        yield temporary


def put(content: str, output: Path | None, *, force: bool = False) -> None:
    """Write text to a file, or over one with `force`, or to stdout, its control characters spelled
    out; raises UsageError where that fails."""
    colored = output is None and sys.stdout.isatty()
    content = literal_output(content) if colored else literal_lines(content)
    if output is not None:
        with written(output, force=force) as temporary:
            temporary.write_text(content, encoding="utf-8")
        return
    try:
        sys.stdout.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"can't write the output ({error.strerror})") from None


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def say(text: str) -> None:
    """One line on stderr, its control characters spelled out."""
    typer.echo(one_line(text), err=True)


def warn(message: object) -> None:
    """One line on stderr that names the program."""
    say(f"profkit: {message}")


def kept(keep: Callable[[], T]) -> T | None:
    """What saving state returns; a warning and None where nothing can be written."""
    try:
        return keep()
    except EnvironmentProblem as error:
        warn(error)
        return None


def report_failures(failures: Sequence[ProfkitError]) -> None:
    """A line for each, equal ones once; raises typer.Exit of the gravest where there is one."""
    for line in dict.fromkeys(map(str, failures)):
        warn(line)
    if failures:
        raise typer.Exit(max(failure.exit_code for failure in failures))


@contextmanager
def interruptible(left: str = "nothing was saved") -> Iterator[None]:
    """Ctrl-C, and signals that ask to end, end what is inside in order and the command with 130.

    `left` says what is there then, unless the interruption has a note. Signals that nohup and such
    turned off stay off. What fails after such a signal failed for it: an extension module that is
    being imported makes an ImportError of the interruption.
    """
    signals: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        signals.append(number)
        raise _Ended

    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt as interruption:
        _end("; ".join(getattr(interruption, "__notes__", [left])))
    except Exception:
        if not signals:
            raise
        _end(left)


def _end(left: str) -> NoReturn:
    warn(f"interrupted; {left}")
    raise typer.Exit(_INTERRUPTED) from None


class _Ended(KeyboardInterrupt):
    """Not KeyboardInterrupt itself: one that passes through exec(), which making a dataclass calls,
    has Python end by SIGINT whoever caught it afterward."""
