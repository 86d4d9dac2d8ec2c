"""Every way to say a quantity has examples, and they say it."""

from __future__ import annotations

import pytest

from profkit.audit.claim import UNITS
from profkit.audit.claim_text import understood
from profkit.audit.phrases import PHRASES, WORDS

EXAMPLES = [
    (phrases.quantity, example)
    for group in PHRASES.values()
    for phrases in group
    for example in phrases.like
]


@pytest.mark.parametrize(("quantity", "example"), EXAMPLES)
def test_an_example_says_its_quantity(quantity: str, example: str) -> None:
    assert quantity in UNITS
    assert quantity in understood(example).figures


def test_every_pattern_has_its_parts() -> None:
    patterns = [pattern for group in PHRASES.values() for one in group for pattern in one.patterns]
    for pattern in (*patterns, *(words.pattern for words in WORDS.values())):
        assert "<value>" not in pattern
        assert "<number>" not in pattern
