"""The next experiment with the switches of `profkit try`: what is proven is to be written, and
causes whose switches were not tried are to be tried; what was decided is not proposed again."""

from collections.abc import Iterable, Sequence

from profkit.application.answer import PlanItem
from profkit.core.typed_file import Amount, Model
from profkit.rules.known_trial import KnownTrial
from profkit.rules.tried import Tried, best_first


class UntriedCause(Model, frozen=True, kw_only=True):
    """A cause with the switches that answer it and were not tried, and its estimate."""

    title: str
    switches: tuple[str, ...]
    low: Amount
    likely: Amount
    high: Amount


class SwitchExperiment(Model, frozen=True, kw_only=True):
    """What to do with the switches of a program or target: `edit` is the largest gain that is
    proven of the run, `causes` those to try next, `tried` what the run or those before it tried of
    `subject`."""

    subject: str
    edit: Tried | None
    causes: tuple[UntriedCause, ...]
    tried: tuple[Tried, ...]


def switch_experiment(
    trial: KnownTrial, plan: Iterable[PlanItem] = (), earlier: Sequence[Tried] = ()
) -> SwitchExperiment | None:
    """The experiment with switches for a run, of whose program the trial and the plan are, after
    the `earlier` ones of the runs before it; None without any."""
    decided = {row.switches for row in (*trial.rows, *earlier) if row.is_decided}
    proven = {name for row in earlier if row.is_proven for name in row.switches}
    causes = []
    for item in plan:
        left = tuple(name for name in item.switches if (name,) not in decided)
        if left and not (item.is_proven or item.is_in_vain or proven & set(item.switches)):
            estimate = {"low": item.low, "likely": item.likely, "high": item.high}
            causes.append(UntriedCause(title=item.finding, switches=left, **estimate))
    first = next(iter(best_first(trial.rows)), None)
    rows = (*trial.rows, *earlier)
    if not rows and not causes:
        return None
    return SwitchExperiment(
        subject=trial.command,
        edit=first if first and first.is_proven else None,
        causes=tuple(causes),
        tried=tuple(row for row in rows if row.is_decided),
    )
