"""Signs of bottlenecks without counters: what code, launch and declared work show.

A sign (`code_signs.yaml`) has a weight over such quantities; a kernel's finding is strongest where
the weight times its factor is largest. Factors (`code_signs.json`, written by
`kernels/code_factors.py`) are fitted to recorded pairs, once to all and once without each of some
parts of them, so that pairs are scored by factors that were fitted without their family. A weight
orders findings and says nothing of what a fix gains.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
from msgspec import Struct, convert, json

from profkit.core.expression import Expression, parse
from profkit.core.text_files import shipped_text
from profkit.core.yaml_files import shipped_yaml
from profkit.report.catalog import catalog
from profkit.report.counter_free import is_counter, launch_facts
from profkit.report.summary import Group
from profkit.rules.declared_headroom import TOLERANCE
from profkit.rules.finding import Evidence, evidence
from profkit.rules.libraries import caller_actions, library_of
from profkit.rules.rule_file import Rule, shipped_rules
from profkit.rules.samples import CODE

Source = Literal["code", "launch", "declared work"]
Factors = Mapping[str, float]
PARTS = 8
"""Parts of the recorded pairs that factors are fitted without, chosen: 24 pairs each."""

_WORTH_SHOWING = 0.1
"""The least weight of a sign that is shown, chosen: a sixth of what the first finding of recorded
pairs has in the median, 0.57."""
_DECLARED = "declared_"


class SignForm(Struct, frozen=True, forbid_unknown_fields=True):
    """A sign as in the file."""

    rule: str
    weight: str
    shows: tuple[str, ...]


class _Form(Struct, frozen=True, forbid_unknown_fields=True):
    signs: tuple[SignForm, ...]


class FactorsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The factors of rules, fitted to all recorded pairs and without each part of them."""

    factors: dict[str, float]
    without: tuple[dict[str, float], ...]


@dataclass(frozen=True)
class Sign:
    """What shows a rule's bottleneck without counters: `shows` are the quantities to list."""

    rule: Rule
    weight: Expression
    shows: tuple[str, ...]

    @cached_property
    def counters(self) -> tuple[str, ...]:
        """The quantities of the rule that take counters."""
        return tuple(name for name in self.rule.names if name in _counted())


@dataclass(frozen=True)
class CodeFinding:
    """A sign on a kernel. `weight` orders findings of one report, `actions` as of an Item."""

    sign: Sign
    group: Group
    weight: float
    evidence: tuple[Evidence, ...]
    actions: tuple[str, ...]

    @property
    def category(self) -> str:
        return self.sign.rule.category

    @property
    def sources(self) -> tuple[Source, ...]:
        """What its evidence rests on."""
        return tuple(dict.fromkeys(source_of(each.quantity) for each in self.evidence))


@dataclass(frozen=True)
class KernelFacts:
    """A kernel and what its code shows, nothing where that is not available.

    `share` is of the time of the kernels of its call, `others_share` that of the others where it
    has the largest, else 0; `declared_share` is the least share of the call's time that the bytes
    of its declared work take, NaN without.
    """

    group: Group
    code: Mapping[str, float]
    share: float
    others_share: float
    declared_share: float = math.nan


def source_of(quantity: str) -> Source:
    """Where a quantity is from."""
    if quantity in CODE:
        return "code"
    return "declared work" if quantity.startswith(_DECLARED) else "launch"


@cache
def signs() -> tuple[Sign, ...]:
    """The signs that come with profkit."""
    rules = {rule.name: rule for rule in shipped_rules()}
    form = convert(shipped_yaml("profkit.rules", "code_signs.yaml"), _Form)
    return tuple(Sign(rules[row.rule], parse(row.weight), row.shows) for row in form.signs)


@cache
def _counted() -> frozenset[str]:
    """The catalog's quantities that no launch has without counters."""
    quantities = catalog().quantities.values()
    return frozenset(
        entry.name
        for entry in quantities
        if not any(
            all(map(_is_free, alternative.formula.names)) for alternative in entry.alternatives
        )
    )


def _is_free(name: str) -> bool:
    return "__" in name and not is_counter(name)


@cache
def _fitted() -> FactorsFile:
    return json.decode(shipped_text("profkit.rules", "code_signs.json"), type=FactorsFile)


def factors(family: str | None = None) -> Factors:
    """The factors of rules; those fitted without the pairs of a family's part if one is given."""
    return _fitted().factors if family is None else _fitted().without[part_of(family)]


def part_of(family: str) -> int:
    """The part of the recorded pairs that a family belongs to."""
    return int(hashlib.sha256(family.encode()).hexdigest(), 16) % PARTS


def code_findings(kernels: Sequence[KernelFacts], factors: Factors) -> tuple[CodeFinding, ...]:
    """What shows on some kernels, the strongest first, of one category on a kernel the strongest.

    What needs the code of a kernel whose code is not available is left out, and what no action
    helps on its compute capability.
    """
    strongest: dict[tuple[str, int], CodeFinding] = {}
    for row in weights(kernels):
        weight = row.weight * factors.get(row.sign.rule.name, 1.0)
        group, rule = row.kernel.group, row.sign.rule
        if not weight >= _WORTH_SHOWING * row.facts["kernel_share"]:
            continue
        if not rule.actions_on(group.typical.gpu.cc):
            continue
        key = rule.category, id(group)
        if key not in strongest or weight > strongest[key].weight:
            shown = tuple(
                evidence(name, row.facts[name])
                for name in row.sign.shows
                if row.facts.get(name, math.nan) != 0
                and not math.isnan(row.facts.get(name, math.nan))
            )
            finding = CodeFinding(row.sign, group, weight, shown, _actions(rule, group))
            strongest[key] = finding
    return tuple(sorted(strongest.values(), key=lambda each: (-each.weight, each.category)))


def _actions(rule: Rule, group: Group) -> tuple[str, ...]:
    if library := library_of(group.typical.name):
        return caller_actions(library, rule.category)
    return rule.actions_on(group.typical.gpu.cc)


@dataclass(frozen=True)
class Weighed:
    """A sign's weight on a kernel times the kernel's share of the time, with the quantities."""

    sign: Sign
    kernel: KernelFacts
    weight: float
    facts: Mapping[str, float]


def weights(kernels: Sequence[KernelFacts]) -> Iterable[Weighed]:
    """The weights of all signs on all kernels, without factors."""
    for kernel in kernels:
        facts = _quantities(kernel)
        for sign in signs():
            columns = {name: np.array([facts.get(name, math.nan)]) for name in sign.weight.names}
            weight = float(np.broadcast_to(sign.weight(columns), 1)[0]) * kernel.share
            yield Weighed(sign, kernel, weight, facts)


def _quantities(kernel: KernelFacts) -> Mapping[str, float]:
    declared = kernel.declared_share
    # bytes that take longer than the kernel took have not all been moved
    possible = declared if declared <= 1 + TOLERANCE else math.nan
    return {
        **launch_facts(kernel.group.typical),
        **kernel.code,
        "declared_dram_share": possible,
        "declared_rest": 1.0 if math.isnan(possible) else max(1 - possible, 0.0),
        "kernel_share": kernel.share,
        "other_kernels_share": kernel.others_share,
    }
