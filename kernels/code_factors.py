"""Factors of the signs without counters, fitted to recorded pairs: profkit/rules/code_signs.json.

    python -m kernels.code_factors [reports/h200/pairs]

A factor is moved as long as it makes more first findings agree with those of the full analysis, the
smallest move first; once with all pairs and once without each part of their families.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import json

from profkit.analysis.report import load
from profkit.report.counter_free import counter_free
from profkit.rules.code_signs import PARTS, Factors, FactorsFile, part_of, signs, weights
from profkit.rules.outlook import Call, outlook_of_launches
from profkit.score.pair_archive import unpacked
from profkit.score.score import RecordedPair, definitions_of, pairs_in, read_pair

PAIRS = Path("reports/h200/pairs")
FILE = Path(__file__).parents[1] / "profkit" / "rules" / "code_signs.json"
_MOVES = (1.0, 0.85, 1.2, 0.7, 1.45, 0.5, 2.0, 0.35, 2.8)
"""Values of a factor, chosen: about 1.2 apart, up to 3 in both directions of a sign as written."""
_ROUNDS = 3  # chosen: later ones change nothing


@dataclass(frozen=True)
class Case:
    """A pair's first category by the full analysis, and the weights of rules on its kernels."""

    family: str
    category: str
    weights: Mapping[str, float]

    def agrees(self, factors: Factors) -> bool:
        """Whether the first finding by these factors is of the category."""
        best = max(factors, key=lambda name: factors[name] * self.weights.get(name, 0.0))
        return _categories()[best] == self.category


def case(pair: RecordedPair) -> Case | None:
    """A pair's case; None without a finding to agree with."""
    findings = load(pair.before).checklist(blamed=0).findings
    if not findings:
        return None
    calls = {"": Call(pair.work, pair.seconds)}
    strongest: dict[str, float] = defaultdict(float)
    for row in weights(outlook_of_launches(counter_free(pair.before), calls, {}).facts):
        name = row.sign.rule.name
        strongest[name] = max(strongest[name], row.weight)
    return Case(pair.family, findings[0].rule.category, strongest)


def fitted(cases: Sequence[Case]) -> dict[str, float]:
    """The factors with which the most cases agree."""
    factors = {sign.rule.name: 1.0 for sign in signs()}
    for _ in range(_ROUNDS):
        for name in factors:
            tried = [{**factors, name: move} for move in _MOVES]
            factors = max(tried, key=lambda each: sum(case.agrees(each) for case in cases))
    return factors


def _categories() -> Mapping[str, str]:
    return {sign.rule.name: sign.rule.category for sign in signs()}


def main() -> None:
    """Fit the factors and write them."""
    recorded = Path(sys.argv[1]) if sys.argv[1:] else PAIRS
    with unpacked(recorded) as folders:
        pairs = [read_pair(folder, definitions_of(recorded)) for folder in pairs_in(folders)]
        cases = [made for pair in pairs if (made := case(pair))]
    parts = [[each for each in cases if part_of(each.family) != part] for part in range(PARTS)]
    result = FactorsFile(fitted(cases), tuple(map(fitted, parts)))
    FILE.write_bytes(json.format(json.encode(result), indent=1) + b"\n")
    everywhere = sum(each.agrees(result.factors) for each in cases)
    held_out = sum(each.agrees(result.without[part_of(each.family)]) for each in cases)
    print(f"{everywhere} of {len(cases)} agree, {held_out} by factors without their family")


if __name__ == "__main__":
    main()
