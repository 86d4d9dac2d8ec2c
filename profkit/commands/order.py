"""In which order the kernels of a report are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from profkit.core.errors import UsageError
from profkit.core.suggestion import did_you_mean
from profkit.report.catalog import catalog
from profkit.report.summary import Group, ReportSummary

_RANKS: Mapping[str, Callable[[Group], Any]] = {
    "name": lambda group: group.name,
    "count": lambda group: -group.count,
    "order": lambda group: group.launches[0].index,
}
_KEYS = ("time", *_RANKS)


def known_key(key: str) -> None:
    """Raise UsageError for a sort key that is none."""
    if key not in _KEYS and key not in catalog().quantities:
        raise UsageError(
            f"--sort {key!r} is not {', '.join(_KEYS)} or a quantity",
            did_you_mean(key, (*_KEYS, *catalog().quantities), "see `profkit metrics`", most=3),
        )


def order(report: ReportSummary, key: str) -> tuple[Group, ...]:
    """The report's groups by a known sort key; those without a value that can be come last."""

    def largest_first(group: Group) -> float:
        value = group.typical.get(key)
        doubtful = math.isnan(value) or key in group.typical.impossible
        return math.inf if doubtful else -value

    if key == "time":
        return report.groups
    return tuple(sorted(report.groups, key=_RANKS.get(key, largest_first)))
