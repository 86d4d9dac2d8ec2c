"""Whether what `profkit next` predicts to move does, on recorded fixes.

    PYTHONPATH=. python benchmarks/predictions.py [reports/h200/pairs]

Of each pair with a fix, the experiment proposed for the fixed category is judged as `profkit next
BEFORE AFTER` does. Prints the share whose first measure moved by 10% or more as predicted, and how
often the gain was as predicted; the pairs that were not are listed.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from profkit.analysis.report import load
from profkit.comparison.reports import diff
from profkit.experiment.outcome import Outcome, Verdict, outcome
from profkit.experiment.prediction import next_experiments
from profkit.score.pair_archive import unpacked
from profkit.score.score import RecordedPair, pairs_in, read_pair

PAIRS = Path("reports/h200/pairs")


def judged(pair: RecordedPair) -> Outcome | None:
    """The outcome of the prediction for the fixed category; None where there was none."""
    if pair.after is None or pair.category is None or pair.kind == "no_gain":
        return None
    before, after = load(pair.before), load(pair.after)
    proposed = next_experiments(before, sys.maxsize).proposed
    prediction = next((each for each in proposed if each.category == pair.category), None)
    if prediction is None:
        return None
    kernels = [{group.name for group in report.summary.groups} for report in (before, after)]
    single = all(len(names) == 1 for names in kernels)
    names = dict(zip(*kernels, strict=True)) if single else None
    return outcome(prediction, diff(before, after, names=names))


def main() -> None:
    """Judge all pairs and print the figures."""
    verdicts: Counter[Verdict] = Counter()
    with unpacked(Path(sys.argv[1]) if sys.argv[1:] else PAIRS) as folders:
        for folder in pairs_in(folders):
            pair = read_pair(folder)
            made = judged(pair)
            if made is None:
                continue
            verdicts[made.verdict] += 1
            if made.verdict is not Verdict.held:
                print(f"{pair.name:32} {pair.category:24} {made.verdict}: {made.reason}")
    known = sum(verdicts.values()) - verdicts[Verdict.open]
    moved = known - verdicts[Verdict.untested]
    print(", ".join(f"{count} {verdict.lower()}" for verdict, count in verdicts.most_common()))
    print(f"moved as predicted: {moved} of {known}, {moved / known:.0%}")


if __name__ == "__main__":
    main()
