"""`%load_ext profkit` in IPython: `%%profkit` on a cell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import profkit

pytest.importorskip("IPython", reason="IPython is not installed")

QUICK = "--samples 16 --blocks 2 --warmup-ms 1"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    folder = str(tmp_path_factory.mktemp("notebook"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell replaces it
        patch.setenv("IPYTHONDIR", folder)
        patch.setenv("PROFKIT_LOCK_DIR", folder)
        shell = InteractiveShell()
        shell.history_manager.enabled = False
        shell.run_cell("%load_ext profkit")
        shell.run_cell("import numpy as np\nx = np.ones(64)\nexpected = 2 * x")
        yield shell


def run_of(shell: Any, cell: str) -> profkit.Run:
    run = shell.run_cell(cell).result
    assert isinstance(run, profkit.Run)
    return run


def test_the_body_of_a_cell_is_measured_as_a_function(shell: Any) -> None:
    run = run_of(shell, f"%%profkit {QUICK} --reference expected --name double\ny = x + x\ny")
    assert (run.name, run.verdict) == ("double", "PASSED")
    assert "y" not in shell.user_ns
    assert "double" not in shell.user_ns
    wrong = run_of(shell, f"%%profkit {QUICK} --reference expected\nx + 1.1")
    assert wrong.verdict == "WRONG"
    html = shell.display_formatter.format(run)[0]
    assert "<table" in html["text/html"]
    assert "**double**  PASSED" in html["text/markdown"]


def test_a_variable_of_the_name_of_the_cell_stays(shell: Any) -> None:
    shell.run_cell("cell = None")
    run_of(shell, f"%%profkit {QUICK}\nx + x")
    assert shell.user_ns["cell"] is None


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%profkit --sample 3\nx", "unrecognized arguments: --sample 3"),
        ("%%profkit --samples\nx", "argument --samples: expected one argument"),
        ("%%profkit --samples many\nx", "argument --samples: invalid int value: 'many'"),
        ("%%profkit --reference nothing\nx", "nothing: no such name in the notebook"),
        ("%%profkit x\nx", "unrecognized arguments: x"),
        ("%%profkit\nx +", "line 1: invalid syntax"),
        ("%%profkit\nfrom math import *\nsin(1)", "import * only allowed at module level"),
        ("%%profkit\nawait x", "'await' outside async function"),
        ("%%profkit\nx\0", "null bytes"),
        ("%%profkit --name 'x\nx", "No closing quotation"),
        ("%%profkit\nyield x", "returns a generator"),
        ("%%profkit --name 1x\nx", "--name '1x' is not a name"),
    ],
)
def test_a_mistake_is_one_line(
    shell: Any, cell: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell(cell).result is None
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("profkit: ")
    assert words in line


def test_the_magic_says_what_it_does(shell: Any) -> None:
    assert "--reference" in shell.magics_manager.magics["cell"]["profkit"].__doc__
