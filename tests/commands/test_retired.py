"""Retired words: one line that says so and what to use."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("diff a.ncu-rep b.ncu-rep --format sarif", "use --format github or json"),
        ("diff a.ncu-rep b.ncu-rep --format junit", "use --format github or json"),
        ("calibrate --on local", "sizes of a baseline are compared on one GPU"),
        ("roofline a.ncu-rep --path", "`baseline report` draws the path"),
        ("source a.ncu-rep --plot a.png", "`profkit report` draws the phases"),
        ("time a.py --energy", "--format json has the power at each block"),
        ("baseline run a.py --energy", "summary.json has the power of each cell"),
        ("time --from a.json --plot a.png", "--save has all samples"),
        ("history plot flash -o a.png", "`profkit history page` draws the series"),
        ("history check --format junit", "use --format json"),
    ],
)
def test_a_retired_word_names_what_to_use(
    words: str, instead: str, profkit_cli: Callable[..., Result]
) -> None:
    done = profkit_cli(*words.split())
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert "was retired" in line
    assert instead in line
