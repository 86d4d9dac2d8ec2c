"""The command line: assembles the verbs, and ends every failure in one line and its exit code."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from profkit import __version__
from profkit.commands.analyze import analyze
from profkit.commands.doctor import doctor
from profkit.commands.metrics import metrics
from profkit.commands.profile import profile
from profkit.errors import ProfkitError, UsageError


class _Verbs(TyperGroup):
    """Runs a verb; a ProfkitError becomes one line on stderr."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except ProfkitError as error:
            typer.echo(f"profkit: {error}", err=True)
            raise typer.Exit(error.exit_code) from None


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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """What limits a GPU kernel, what fixing it would give, and whether the fix worked.

    Exit codes: 0 done, 1 a gate failed, 2 wrong usage, 3 inconclusive, 4 the environment can't,
    5 bad input, 6 the profiled program failed.
    """


app.command()(profile)
app.command()(analyze)
app.command()(metrics)
app.command()(doctor)


_ASCII = str.maketrans({"µ": "u", "×": "x", "…": "~", "─": "-", "±": "+-", "█": "#"})


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """What a terminal that lacks our characters shows for them; never a question mark, which means
    a doubtful value here."""
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
        print(f"profkit: can't write the output ({error.strerror})", file=sys.stderr)
        sys.exit(UsageError.exit_code)


def _silence_stdout() -> None:
    """Nothing more can be written: keep the interpreter from trying at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
