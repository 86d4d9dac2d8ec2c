"""Every recorded value is the one that the vendor's reader gives: metrics, instances and the rest.

By day a sample of launches and instanced metrics, nightly all. In processes of their own, a few
reports each: the vendor's reader frees nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.report.launch_message import (
    LaunchMessage,
    Metric,
    RuleResult,
    plain_text,
)
from profkit.report.names import without_homes
from profkit.report.quantities import request
from profkit.report.reader import read, unit_of
from tests.conftest import CORPUS, NIGHTLY, ROOT, apart

ncu_report = pytest.importorskip("ncu_report", reason="NVIDIA's reader is hidden")

REPORTS = sorted({*(ROOT / "reports").rglob("*.ncu-rep*"), *CORPUS.glob("*.ncu-rep*")})
AT_ONCE = 6
_EACH_LAUNCH = 1 if NIGHTLY else 5
_EACH_METRIC = 1 if NIGHTLY else 40
_BASES = ncu_report.IAction
_KINDS = {0: "none", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}
_SCALED = {"%", "ns"}  # units that are not of SI
_SCOPES = {1: "local", 2: "global"}


def differences(path: Path) -> list[str]:
    """What differs between the two readers, and nothing else."""
    raw = read(path, request())
    handles = [handle for handles in ncu_report.load_report(str(path)) for handle in handles]
    assert len(handles) == len(raw.actions)
    found = []
    places = range(0, len(handles), _EACH_LAUNCH)
    for place in places:
        launch, action, handle = raw.launches[place], raw.actions[place], handles[place]
        pairs = {
            "name": (launch.name, without_homes(handle.name(_BASES.NameBase_DEMANGLED))),
            "function": (launch.function, without_homes(handle.name(_BASES.NameBase_FUNCTION))),
            "NVTX": (launch.nvtx, tuple(_nvtx(handle.nvtx_state()))),
            "sources": (dict(action.source_files()), dict(handle.source_files())),
            "rules": (launch.rules, tuple(map(_rule, handle.rule_results_as_dicts()))),
            "metrics": (set(action.metric_names()), set(handle.metric_names())),
        }
        found += [f"{path.name} {place} {name}" for name, (a, b) in pairs.items() if a != b]
        found += [f"{path.name} {place} {name}" for name in _metrics(action.message, handle)]
    return found


def _metrics(message: LaunchMessage, handle: Any) -> Iterator[str]:
    """The metrics that differ."""
    for number, name in enumerate(message.metrics):
        metric, reference = message.metric_by_name(name), handle.metric_by_name(name)
        assert metric is not None
        value = _possible(reference.value()) if reference.has_value() else None
        unit = reference.unit()
        if unit in _SCALED and unit_of(name) != unit and not name.startswith("regex:"):
            yield f"{name} in {unit}"
        if not _same(metric.value(), value) or (
            number % _EACH_METRIC == 0 and not _same_instances(metric, reference)
        ):
            yield name


def _possible(value: Any) -> Any:
    """A value, NaN for a number that no counter has."""
    return value if isinstance(value, str) or 0 <= value <= 1e20 else type(value)("nan")


def _same(value: Any, reference: Any) -> bool:
    both_nan = value != value and reference != reference
    return type(value) is type(reference) and (value == reference or both_nan)


def _same_instances(metric: Metric, reference: Any) -> bool:
    values = [reference.value(index) for index in range(reference.num_instances())]
    ids = reference.correlation_ids() if reference.has_correlation_ids() else None
    identities = [ids.value(index) for index in range(ids.num_instances())] if ids else []
    pairs = itertools.zip_longest(
        (*metric.instances.values, *metric.instances.ids), (*values, *identities)
    )
    return all(_same(*pair) for pair in pairs)


def _nvtx(state: Any) -> Iterator[str]:
    for domain in map(state.domain_by_id, state.domains()) if state is not None else ():
        yield from map(without_homes, domain.push_pop_ranges())
        yield from map(without_homes, domain.start_end_ranges())


def _rule(result: dict[str, Any]) -> RuleResult:
    message, estimate = result["rule_message"], result.get("speedup_estimation")
    return RuleResult(
        rule=result["rule_identifier"],
        section=result["section_identifier"],
        kind=_KINDS[message["type"]],
        title=without_homes(message["title"] or result["name"]),
        message=plain_text(message["message"]),
        speedup=estimate["speedup"] / 100 if estimate else None,
        scope=_SCOPES[estimate["type"]] if estimate else None,
    )


@pytest.mark.parametrize("first", range(0, len(REPORTS), AT_ONCE))
def test_both_readers_give_the_same(first: int) -> None:
    some = REPORTS[first : first + AT_ONCE]
    assert [found for each in apart(differences, some) for found in each] == []
