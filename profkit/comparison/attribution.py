"""Why a kernel's time changed: causes whose seconds add up to the change exactly.

A launch takes

    T = I · R · (Σ s_r) / (n · W · A · f) · e

with I warp instructions executed, R issues for each, s_r the cycles that a warp spends in state r
for an issued instruction, n SMs, W warps resident on an SM with work, A the share of cycles in
which an SM had work, f the SM clock; e is the residual between counters of different passes. The
logarithmic mean L(a, b) = (a - b) / ln(a / b) then splits the change without a rest (LMDI-I; Ang,
Energy Policy 33, 2005): with T_r the part of T spent in state r, factor x gets
Σ_r L(T_r', T_r) · ln(x' / x), and state r gets L(T_r', T_r) · ln(s_r' / s_r). Derived,
with its limits, in docs/reference/methods/comparison.md.
"""

import math
from collections.abc import Mapping
from enum import StrEnum

from msgspec import field

from profkit.core.typed_file import Model, Number, Real
from profkit.report.summary import Group, LaunchSummary


class CauseKind(StrEnum):
    """What a cause of a change of time is about."""

    instructions = "instructions"
    stall = "stall"
    parallelism = "parallelism"
    clock = "clock"
    launches = "launches"
    rest = "rest"


class Cause(Model, frozen=True):
    """The seconds that a factor contributes to a change (below 0: saved), and its values."""

    key: str
    label: str
    kind: CauseKind
    seconds: Number
    before: Real = math.nan
    after: Real = math.nan
    unit: str | None = None


class Attribution(Model, frozen=True):
    """Causes whose seconds add up to the change, largest first; factors `missing` on a side are in
    the rest."""

    before: Number = field(name="before_s")
    after: Number = field(name="after_s")
    change: Number = field(name="change_s")
    causes: tuple[Cause, ...]
    missing: tuple[str, ...]


_FACTORS: tuple[tuple[str, str, CauseKind, str | None, int], ...] = (
    ("instructions", "instructions executed", CauseKind.instructions, "instruction", 1),
    ("reissues", "issues per instruction", CauseKind.instructions, None, 1),
    ("warps_resident", "resident warps (occupancy)", CauseKind.parallelism, "warp", -1),
    ("sms_with_work", "SM active share (waves, tail)", CauseKind.parallelism, "1", -1),
    ("clock", "SM clock", CauseKind.clock, "Hz", -1),
)
"""Key, label, sort, unit, and the power of the value that the time grows with."""
_WHOLE = "cycles"
_ISSUING = "stall_selected"


def attribute(before: Group, after: Group) -> Attribution:
    """The change of a kernel's median time, by cause."""
    return split(
        before.median,
        after.median,
        factors_of(before.typical),
        factors_of(after.typical),
        *stalls_of_both(before.typical, after.typical),
    )


def factors_of(launch: LaunchSummary) -> Mapping[str, float]:
    """The factors of a launch's time that it recorded, by their keys."""
    executed, issued = launch.get("instructions_executed"), launch.get("instructions_issued")
    clock = launch.get("sm_clock")
    active = launch.get("sm_active_share")
    if math.isnan(active):
        active = launch.get("active_cycles") / (launch.duration * clock)
    factors = {
        "instructions": issued if math.isnan(executed) else executed,
        "reissues": issued / executed if executed else math.nan,
        "warps_resident": launch.get("warps_active"),
        "sms_with_work": active,
        "clock": clock,
    }
    return {key: value for key, value in factors.items() if value > 0 and math.isfinite(value)}


def stalls_of(launch: LaunchSummary) -> Mapping[str, float]:
    """Cycles of a warp for an issued instruction, by state."""
    return {stall.reason: stall.cycles for stall in launch.stalls if stall.cycles > 0}


def stalls_of_both(
    before: LaunchSummary, after: LaunchSummary
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The states of two launches; none where one has counters and the other warp samples."""
    if before.is_proxy(_ISSUING) != after.is_proxy(_ISSUING):
        return {}, {}
    return stalls_of(before), stalls_of(after)


def split(
    before: float,
    after: float,
    factors: Mapping[str, float],
    factors_after: Mapping[str, float],
    stalls: Mapping[str, float],
    stalls_after: Mapping[str, float],
) -> Attribution:
    """The change from `before` to `after` (s) by factor, and by warp state (cycles).

    Factors are those of `factors_of`, above 0; one that a side lacks is part of the rest. Both
    times must be above 0; the seconds of the causes add up to `after - before`.
    """
    has_stalls = bool(stalls and stalls_after)
    parts, parts_after = {_WHOLE: before}, {_WHOLE: after}
    if has_stalls:
        parts, parts_after = _by_state(before, stalls), _by_state(after, stalls_after)
    weights = {
        state: logarithmic_mean(parts_after.get(state, 0.0), parts.get(state, 0.0))
        for state in {**parts, **parts_after}
    }
    weight = sum(weights.values())
    causes, missing = [], []
    for key, label, kind, unit, exponent in _FACTORS:
        if key in factors and key in factors_after:
            earlier, later = factors[key], factors_after[key]
            seconds = weight * exponent * math.log(later / earlier)
            causes.append(Cause(key, label, kind, seconds, earlier, later, unit))
        else:
            missing.append(label)
    if not has_stalls:
        missing.append("warp states")
    for state in weights if has_stalls else ():
        earlier, later = stalls.get(state, 0.0), stalls_after.get(state, 0.0)
        if earlier and later:
            seconds = weights[state] * math.log(later / earlier)
        else:
            seconds = parts_after.get(state, 0.0) - parts.get(state, 0.0)
        causes.append(
            Cause(f"stall_{state}", state, CauseKind.stall, seconds, earlier, later, "cycle")
        )
    rest = after - before - sum(cause.seconds for cause in causes)
    label = "not attributed" if missing else "residual between counter passes"
    causes.append(Cause("rest", label, CauseKind.rest, rest))
    ordered = sorted(causes, key=lambda cause: (-abs(cause.seconds), cause.key))
    return Attribution(before, after, after - before, tuple(ordered), tuple(missing))


def logarithmic_mean(a: float, b: float) -> float:
    """(a - b) / ln(a / b), its limit a where both are equal, 0 where one is 0."""
    if a <= 0 or b <= 0:
        return 0.0
    ratio = a / b
    if abs(ratio - 1) < 1e-6:  # where a - b has few digits left; the next term is 1e-13
        return b * (1 + (ratio - 1) / 2)
    return (a - b) / math.log(ratio)


def _by_state(seconds: float, stalls: Mapping[str, float]) -> dict[str, float]:
    total = sum(stalls.values())
    return {state: seconds * cycles / total for state, cycles in stalls.items()}
