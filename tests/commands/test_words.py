"""What verbs print is in the field's own terms: phrases that readers could not explain are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


@pytest.mark.parametrize(
    "phrase",
    [
        "moves so by",
        "classic rule",
        "how much is not estimated",
        "equal ones",
        "each row up to its highest",
        "of gathers half",
        "alone: FLOP not recorded",
        "as recorded less what",
        "of its chain",
    ],
)
def test_no_output_has_words_that_readers_could_not_explain(phrase: str) -> None:
    files = sorted(GOLDEN.glob("*.txt"))
    assert files
    having = [path.name for path in files if phrase in path.read_text(encoding="utf-8")]
    assert not having
