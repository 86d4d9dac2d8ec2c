"""The terminal output on recorded reports, letter by letter.

`make golden` writes the expected files anew; read their diff before committing it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "data" / "golden"
VIEWS = {
    "known.txt": ("analyze", "reports/h200/known.ncu-repz", "--top", "0"),
    "sdpa_s512_math.txt": ("analyze", "reports/h200/sdpa_s512_math.ncu-repz"),
    "checklist.txt": ("checklist", "reports/h200/sdpa_s512"),
    "explain.txt": (
        *("rules", "explain", "shared_bank_conflicts"),
        *("--on", "reports/h200/known.ncu-repz", "--kernel", "transpose"),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_terminal_output(
    profkit_cli: Callable[..., Result],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(ROOT)
    shown = profkit_cli(*VIEWS[name]).stdout
    golden: Path = GOLDEN / name
    if request.config.getoption("--regenerate"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")
