"""The command line: assembles the verbs, and ends every failure in one line and its exit code."""

import codecs
import inspect
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any

import typer

from profkit.commands.options import Drawing, Reading, Verbs, verb_of, warn
from profkit.commands.parameters import flat
from profkit.core.errors import EnvironmentProblem, ProfkitError, UsageError
from profkit.core.suggestion import did_you_mean
from profkit.core.version import __version__

# The command-line library's own failures, of which a wrong option value is one.
_WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[1]
_WRONG_VALUE = "Value error, "
_GATES = "--fail-on"
_WRONG_ARGUMENTS = "Missing argument", "Got unexpected extra argument"
_EXAMPLE = re.compile(r"^Examples:\n *(profkit .*)", re.MULTILINE)
_PIPE_CLOSED = 128 + 13
"""What a shell reports of a program that SIGPIPE ended, `profkit ... | head`; help ends with 0."""
_HELP = {"-h", "--help"}


_PANELS = {
    "Profile and analyze": "plan profile timeline analyze checklist report source roofline",
    "Compare": "diff compare audit",
    "Experiment": "try next log",
    "Time": "time optimize baseline",
    "Follow over time": "history",
    "Reference": "metrics rules",
    "Setup": "doctor calibrate ceilings mcp",
}
"""The verbs by panel, in the order of the help."""
_VERBS = {name: panel for panel, names in _PANELS.items() for name in names.split()}
_DRAWING = {"roofline"}


class _Commands(Mapping[str, object]):
    """The verbs' commands; a verb's module is imported, and its options are read, when asked for:
    of all of them that would take longer than most verbs do."""

    def __iter__(self) -> Iterator[str]:
        return iter(_VERBS)

    def __len__(self) -> int:
        return len(_VERBS)

    def __getitem__(self, name: str) -> Any:
        return _loaded(name)

    def get(self, name: str, default: Any = None) -> Any:
        """A verb that cannot be loaded raises what is wrong with it."""
        return _loaded(name) if name in _VERBS else default


@cache
def _loaded(name: str) -> Any:
    panel = _VERBS[name]
    word = f"{name}_" if iskeyword(name) else name
    verb: Any = getattr(import_module(f"profkit.commands.{word}"), word)
    alone = typer.Typer(add_completion=False)
    if isinstance(verb, typer.Typer):
        for command in verb.registered_commands:
            command.callback = flat(command.callback)
        alone.add_typer(verb, name=name, cls=Verbs)
    else:
        alone.command(name, cls=Drawing if name in _DRAWING else Reading)(flat(verb))
    loaded: Any = typer.main.get_group(alone).commands[name]
    loaded.rich_help_panel = panel
    _reflow(loaded)
    return loaded


def _reflow(command: Any) -> None:
    """Join the lines of the paragraphs of a command's help, and of its commands', but indented
    ones: the help then wraps where the terminal ends."""
    text = inspect.cleandoc(command.help or "")
    command.help = re.sub(r"(?<=[^\n])\n(?=[^\s])", " ", text)
    for verb in getattr(command, "commands", {}).values():
        _reflow(verb)


class _Verbs(Verbs):
    """Runs a verb; a ProfkitError and wrong usage become one line on stderr."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        self._closed_pipe = 0 if _HELP & set(_own(args)) else _PIPE_CLOSED
        with _failures_in_one_line(None, self._closed_pipe):
            _refuse_empty(args)
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _failures_in_one_line(ctx, self._closed_pipe):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


def _own(args: Sequence[str]) -> Sequence[str]:
    """The words before any `--`."""
    return args[: args.index("--")] if "--" in args else args


def _refuse_empty(args: Sequence[str]) -> None:
    """Raise UsageError for an empty word before any `--`: an empty path would be this folder.

    An empty list of gates is refused by the verbs that take one, which name the gates.
    """
    own = _own(args)
    for previous, word in zip(["", *own], own, strict=False):
        empty = not word or (word.startswith("--") and word.endswith("="))
        if empty and _GATES not in {previous, word.rstrip("=")}:
            option = word.rstrip("=") or (previous if previous.startswith("-") else "")
            message = f"{option}: an empty value" if option else "an empty argument"
            raise UsageError(message, "is a shell variable unset?")


@contextmanager
def _failures_in_one_line(ctx: Any, closed_pipe: int) -> Iterator[None]:
    """`closed_pipe` is the exit code where nobody reads the output any more."""
    try:
        yield
    except ProfkitError as error:
        failure = error
    except BrokenPipeError:
        _silence_stdout()
        raise typer.Exit(closed_pipe) from None
    except SystemExit as end:  # how rich ends there
        if isinstance(end.__context__, BrokenPipeError):
            raise typer.Exit(closed_pipe) from None
        raise
    except MemoryError:
        failure = EnvironmentProblem("out of memory", "run it on a machine with more")
    except _WRONG_USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        failure = UsageError(*_usage_failure(error, _command(error, ctx)))
    else:
        return
    warn(failure)
    raise typer.Exit(failure.exit_code)


def _command(error: Any, ctx: Any) -> str:
    """The verb that an error is of, `profkit rules score`, whatever the program is started as."""
    verb = verb_of(getattr(error, "ctx", None)) or getattr(ctx, "invoked_subcommand", None)
    return f"profkit {verb}" if verb else "profkit"


def _usage_failure(error: Any, command: str) -> tuple[str, str]:
    """What the command-line library reports as wrong, and what to type instead."""
    possible = {name.lstrip("-"): name for name in getattr(error, "possibilities", None) or ()}
    message, _, meant = error.format_message().partition(" Did you mean ")
    message = message.partition(" (Possible ")[0].replace(_WRONG_VALUE, "")
    message = " ".join(message.split()).rstrip(".")
    remedy = meant and f"did you mean {meant}"
    if possible:
        name = getattr(error, "option_name", "").lstrip("-")
        remedy = did_you_mean(name, possible, spelled=possible.__getitem__)
    context: Any = getattr(error, "ctx", None)
    if message.startswith(_WRONG_ARGUMENTS) and (found := _EXAMPLE.search(context.command.help)):
        remedy = f"for example `{found[1]}`"
    return message[:1].lower() + message[1:], remedy or f"see `{command} --help`"


app = typer.Typer(
    name="profkit",
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"profkit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find what limits a GPU kernel, estimate the speedup of a fix, and check whether it worked.

    Input is Nsight Compute reports (.ncu-rep), or runs that `profkit profile` recorded.

    Exit codes:
      0  success              4  unsuitable environment
      1  gate failed          5  bad input
      2  wrong usage          6  profiled program failed
      3  inconclusive
    """


_ASCII = str.maketrans(
    {"µ": "u", "×": "x", "…": "~", "─": "-", "±": "+-", "█": "#"}
    | dict(zip("▁▂▃▄▅▆▇", "_.:-=+*", strict=True))
)


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Substitutes for characters that a terminal lacks; never a question mark, which marks a
    doubtful value."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_ASCII)
    shown = "".join(character if character.isascii() else "|" for character in text)
    return shown, error.end


def main() -> None:
    """The console script."""
    codecs.register_error("profkit", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="profkit")
    try:
        app()
    except OSError as error:
        _silence_stdout()
        reason = error.strerror or str(error)
        unnamed = f"can't write the output ({reason})"
        place = f"{error.filename}: {reason}" if error.filename else unnamed
        warn(place)
        sys.exit(UsageError.exit_code)


def _silence_stdout() -> None:
    """Keep the interpreter from writing to a closed pipe at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
