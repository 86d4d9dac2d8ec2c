from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from profkit.commands.cli import app
from profkit.commands.groups import TextFormat
from profkit.commands.parameters import flat
from tests.commands.test_docs import verbs_below
from tests.conftest import Cli

_ENDED_WITHIN_EXEC = """
import os, signal
import typer
from profkit.commands.options import interruptible

try:
    with interruptible():
        exec("os.kill(os.getpid(), {number}); signal.pause()")
except typer.Exit as end:
    raise SystemExit(end.exit_code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_an_asked_for_end_exits_with_130_even_from_code_that_is_being_made(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "ended.py").write_text(_ENDED_WITHIN_EXEC.format(number=int(number)))
    command = [sys.executable, "-m", "ended"]  # exec() counts with -m, not with -c
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=600)
    assert done.returncode == 130
    assert b"interrupted" in done.stderr


@pytest.mark.parametrize("verb", ["", *verbs_below(typer.main.get_command(app))])
def test_help_breaks_no_example_metavar_or_option_at_80_columns(
    profkit_cli: Cli, verb: str
) -> None:
    text = profkit_cli(*verb.split(), "--help", COLUMNS="80").stdout
    assert "<" not in text
    assert "…" not in text
    examples = re.findall(r"^   (profkit .*?) *$", text, re.M)
    assert bool(examples) == bool(verb)
    help_text = verbs_below(typer.main.get_command(app))[verb].help if verb else ""
    assert examples == re.findall(r"^  (profkit .*)$", help_text, re.M)


def test_former_option_names_still_work(
    profkit_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text("1.0 1.1 1.2 1.1 1.0")
    for option, folder in (("--out", "a"), ("--output", "b"), ("-o", "c")):
        words = ("baseline", "import", "raw.txt", "--unit", "us", option, folder)
        profkit_cli(*words)
        assert (tmp_path / folder / "summary.json").is_file()


def test_switches_that_are_listed_are_not_called_json(profkit_cli: Cli) -> None:
    result = profkit_cli("try", "--list", "--format", "json", status=2)
    assert not result.stdout
    assert "has no JSON" in result.stderr


def test_an_option_with_choices_is_named_as_its_parameter() -> None:
    """typer 0.27 and 0.28 name an option without flags after its metavar: --FORMAT."""

    def verb(format: TextFormat = "terminal") -> None:
        assert format == "json"

    (option,) = flat(verb).__annotations__["format"].__metadata__
    assert "--format" in (option.default, *option.param_decls)


@pytest.mark.parametrize("verb", verbs_below(typer.main.get_command(app)))
def test_a_docstring_documents_no_parameter_that_is_not_there(verb: str) -> None:
    command = verbs_below(typer.main.get_command(app))[verb]
    assert command.callback.documented <= {each.name for each in command.params}
