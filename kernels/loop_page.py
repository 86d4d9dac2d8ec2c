"""docs/reference/methods/loop.md: the attention ladder climbed with `profkit next` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import profkit
from kernels.recorded import LATENCY, paragraph, report_of, table, timed
from profkit.experiment.log import Test
from profkit.experiment.outcome import compared, tested
from profkit.experiment.prediction import Prediction, next_experiments
from profkit.timing.latency_format import Series
from profkit.timing.latency_view import latency_words

CHANGES: Mapping[str, str] = {
    "serial_kv": "",
    "all_threads": "four lanes share a query row and exchange by shuffles",
    "tensor_core": "both products by `mma.sync`",
    "swizzled": "the index bits of a row are XORed into its columns",
    "async_pipeline": "`cp.async` fetches the next tile while tensor cores work on this one",
    "triton_flash": "twice the warps on an SM, in Triton",
    "hopper": "`wgmma` and TMA; loading warps give their registers to those that compute",
}
"""The change that led to each kernel of the loop."""
_PROPOSED = 3  # as `profkit next` proposes
_LOOP = """
What a coding agent does by [its instructions](../../agents.md), from the [attention
ladder](ladder.md)'s rung 1 on: ask `profkit next` for the experiment, make that change, measure,
ask again. The kernels are those of the ladder, recorded with `ncu --set full` and timed side by
side, so each step is a change that was there to be made; one rung is passed over: splitting K and V
over more blocks is never proposed, and is slower at this shape. The last two changes do several
things at once: there HELD says that what was predicted happened, not that nothing else helped.
"""
_WRITTEN = """
This page is written by `python -m kernels.document` from `{folder}`.
"""


@dataclass(frozen=True)
class Step:
    """A kernel of the loop: the test that its change was, None for the first; what to try next."""

    kernel: str
    test: Test | None
    proposed: tuple[Prediction, ...]


def steps(folder: Path) -> list[Step]:
    """The loop in a folder of the ladder's recordings, none of them in an archive."""
    reports = {name: profkit.load(report_of(folder, name)) for name in CHANGES}
    proposed = {
        name: next_experiments(report, _PROPOSED).proposed for name, report in reports.items()
    }
    first, *_ = CHANGES
    made = [Step(first, None, proposed[first])]
    for before, after in pairwise(CHANGES):
        prediction, outcome = tested(proposed[before], compared(reports[before], reports[after]))
        test = Test(before=before, prediction=prediction, outcome=outcome)
        made.append(Step(after, test, proposed[after]))
    return made


def loop_page(folder: Path) -> str:
    """The page of the loop in such a folder."""
    latencies = timed(folder / LATENCY)
    made = steps(folder)
    first, last = (latencies[step.kernel].summary.median for step in (made[0], made[-1]))
    columns = ("Kernel", "Proposed before it", "Changed", "Latency", "Faster by", "Prediction")
    lines = [
        "# A worked loop",
        "",
        *paragraph(_LOOP),
        "",
        *paragraph(_WRITTEN.format(folder="/".join(folder.parts[-3:]))),
        "",
        *table(columns, (_row(step, latencies) for step in made)),
        "",
        f"At the end {first / last:.0f} times as fast as at the start.",
    ]
    return "\n".join(lines) + "\n"


def _row(step: Step, latencies: Mapping[str, Series]) -> Sequence[str]:
    latency = latency_words(latencies[step.kernel])
    if step.test is None:
        return step.kernel, "", "", latency, "", ""
    before, after = (latencies[name].summary.median for name in (step.test.before, step.kernel))
    title, verdict = step.test.prediction.title, step.test.outcome.verdict
    return step.kernel, title, CHANGES[step.kernel], latency, f"{before / after:.2f}x", verdict
