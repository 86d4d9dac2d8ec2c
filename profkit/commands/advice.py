"""Which rules a command looks for: the shipped ones, the user's, less those left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profkit.commands.reading import Advice
from profkit.core.errors import UsageError
from profkit.core.suggestion import did_you_mean
from profkit.rules.rule_file import Rule, shipped_rules, with_own


def chosen(own: Path | None, disabled: Sequence[str], blamed: int | None) -> Advice:
    """The advice that options ask for.

    Raises BadInput for rules that can't be used, UsageError for a name that is no rule or category.
    """
    rules = with_own(own) if own else None
    for name in disabled:
        _known(name, rules or shipped_rules())
    return Advice(rules, frozenset(disabled), blamed)


def _known(name: str, rules: Sequence[Rule]) -> None:
    names = {rule.name for rule in rules} | {rule.category for rule in rules}
    if name not in names:
        remedy = did_you_mean(name, sorted(names), "see `profkit rules list`", most=3)
        raise UsageError(f"--disable {name!r} is no rule or category", remedy)
