"""Programs whose gains were measured by hand, as a search meets them: scores of search policies.

    python -m tests.trial.hand_measured [--budget 115 300 600] [--seeds 5]

A row of the table: the program, its half (the search was made for what is "seen"), what limits it,
how far two processes of it differ, what it has, its best combinations of switches and each switch
alone, all measured on an H100 without profkit. Where a combination was not measured, gains of one
cause count once. In what is "masked" or "hidden" (held out) one limit hides what removes the next;
combinations of these are estimates, by runs of similar programs.
"""

import argparse
import math
import random
import statistics
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from profkit.trial.evidence import Combination
from profkit.trial.outcome import outcome
from profkit.trial.run import Perturbation, Result
from profkit.trial.search import search
from profkit.trial.switch import all_switches
from profkit.trial.trial_file import Limit, TrialFile

TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")
FIRST, IMPORTS, FORKED, UNITS = 28.0, 11.0, 3.7, 40  # s as on that machine
WHOLE = 1.2  # of a fork, besides the imports
COMPILING, AUTOTUNING, CACHED = 41.0, 170.0, 11.0  # s more of what compiles, and with its cache
UNMEASURED = 0.01  # standard deviation of the logarithm of gains that nobody measured
_SWITCHES = {switch.name: switch for switch in all_switches()}
_ONCE = (  # of each row, the largest gain counts, others little
    {"tf32", "bf16"},
    {"cuda-graph", "inference-mode", "compile", "compile-reduce-overhead", "compile-max-autotune"},
    {"sdpa-flash", "sdpa-efficient", "sdpa-cudnn", "compile"},
    {"fused-optimizer", "foreach-optimizer"},
)
_BESIDE = {  # not in the modules that are compiled
    name
    for name, switch in _SWITCHES.items()
    if switch.changes in ("nothing", "random") or switch.group == "optimizer"
}
_AGAIN = 0.1
CLEAR = 1.03  # of a part of the best combination, below which others give its gain


@dataclass
class HandMeasured:
    """A program of the table, with a clock of its own."""

    name: str
    half: str
    limit: Limit
    spread: float
    features: frozenset[str]
    best: dict[frozenset[str], float]
    gains: dict[str, float]
    seed: int = 0
    start: float = FORKED
    no_gain: bool = False
    now: float = 0.0
    runs: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    by_hand: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.name} {self.seed}")
        self.drift = self.random.gauss(0, 1e-5)
        for name in _SWITCHES:
            self.gains.setdefault(name, math.exp(self.random.gauss(0, UNMEASURED)))

    def gain(self, names: tuple[str, ...]) -> float:
        """The factor by which switches make it faster."""
        if self.no_gain:
            return 1.0
        logs = {name: math.log(self.gains[name]) for name in names}
        known = [together for together in self.best if together <= set(names)]
        if known:
            together = max(known, key=self.best.__getitem__)
            rest = (_AGAIN * logs[name] for name in set(names) - together)
            return self.best[together] * math.exp(sum(rest))
        for row in _ONCE:
            gaining = sorted((logs[name], name) for name in row & logs.keys() if logs[name] > 0)
            for log, name in gaining[:-1]:
                logs[name] = log * _AGAIN
        return math.exp(sum(logs.values()))

    @property
    def reachable(self) -> float:
        """The best that was measured."""
        return max([1.0, *self.best.values(), *self.by_hand.values()])

    def measure(
        self,
        switches: Combination,
        *,
        perturb: Perturbation = "",
        grace: float = 0.0,  # noqa: ARG002
        kept: float = 0.0,  # noqa: ARG002
    ) -> Result:
        names = tuple(switch.name for switch in switches)
        is_first = not self.runs
        seconds = max(FIRST, self.start) if is_first else self.start
        if any(switch.start for switch in switches):
            computing = set(names) - _BESIDE | {name for name in names if _SWITCHES[name].start}
            is_cached = any(computing <= set(run) <= computing | _BESIDE for _, run in self.runs)
            is_tuned = "compile-max-autotune" in names
            seconds += CACHED if is_cached else AUTOTUNING if is_tuned else COMPILING
        if any(switch.environment for switch in switches):
            seconds += IMPORTS
        self.runs.append((self.now, names))
        self.now += seconds
        step = math.exp(self.random.gauss(0, self.spread) + self.drift * self.now)
        step *= 0.04 / self.gain(names)
        times = tuple(step * math.exp(self.random.gauss(0, 0.03)) for _ in range(UNITS))
        return Result(
            names, seconds, unit="optimizer", units=UNITS, times=times, stopped=True,
            results={"losses": [[2.0 - 0.01 * place] for place in range(UNITS)]},
            features=self.features, applied=frozenset(names), limit=self.limit, perturbed=perturb,
            is_whole=is_first, start=IMPORTS,
        )  # fmt: skip

    def trial(self, budget: float) -> TrialFile:
        switches = [switch for switch in _SWITCHES.values() if switch.name != "no-change"]
        evidence = search(self.measure, switches, budget, lambda: self.now, lambda _: None)
        trial = outcome(evidence, (self.name,), budget)
        compiled = {switch.name for switch in switches if switch.start}
        whole = {"best": (), "lower": ()}
        for kind in ("lower", "best"):  # as long as there is time
            names = getattr(trial, kind)
            if not names:
                continue
            self.now += IMPORTS + WHOLE * (self.start + CACHED * bool(compiled & set(names)))
            whole[kind] = names if self.now <= budget else ()
        return msgspec.structs.replace(trial, **whole)


def programs(
    seed: int = 0, start: float = FORKED, spread: float = 0.0, *, no_gain: bool = False
) -> list[HandMeasured]:
    """The table's programs."""
    made = []
    for line in TABLE.splitlines():
        name, half, limit, own, has, best, *alone = line.split()
        features = {"cuda", *has.split(",")} - {"-"}
        if "jax" not in features:
            kind = "unfused-optimizer" if "optimizer" in features else "inference"
            features |= {"torch", "module", "float32", kind}
        if name == "lstm_lm":
            features |= {"single-tensor-optimizer"}
        measured = dict(each.split("=") for each in alone)
        known = {}
        for row in filter("-".__ne__, best.split(";")):
            together, _, gain = row.partition("=")
            parts = together.split("+")
            if half in {"seen", "held"}:
                parts = [key for key in parts if float(measured.get(key, 0)) > CLEAR]
            if len(parts) > 1:
                known[frozenset(parts)] = float(gain)
        gains = {
            key: float(value)
            for key, value in measured.items()
            if not _SWITCHES[key].lacks(frozenset(features))
        }
        what_limits: Limit = msgspec.convert(limit, Limit)
        program = HandMeasured(
            name, half, what_limits, max(spread, float(own)), frozenset(features), known, gains
        )
        made.append(
            replace(
                program, seed=seed, start=start, no_gain=no_gain, by_hand=gains, gains=dict(gains)
            )
        )
    return made


def found(program: HandMeasured, trial: TrialFile) -> float:
    """What the fastest proven combination gains in truth."""
    proven = [row.switches for row in trial.rows if row.switches in {trial.best, trial.lower}]
    return max([1.0, *map(program.gain, proven)])


def is_enough(program: HandMeasured, trial: TrialFile) -> bool:
    """Whether 90% of the gain that was reached by hand is found; of less than 3% none is."""
    gain = program.reachable - 1
    return gain < 0.03 or found(program, trial) - 1 >= 0.9 * gain


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, nargs="+", default=[115, 300, 600])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--start", type=float, default=FORKED)
    parser.add_argument("--spread", type=float, default=0.0, help="of two processes, at least")
    parser.add_argument("--unchanged", type=int, default=15, help="seeds of programs without gains")
    options = parser.parse_args()
    for budget in options.budget:
        score: dict[str, list[bool]] = {"seen": [], "held": [], "masked": [], "hidden": []}
        missed = Counter[str]()
        for seed in range(options.seeds):
            for program in programs(seed, options.start, options.spread):
                enough = is_enough(program, program.trial(budget))
                score[program.half].append(enough)
                missed[program.name] += not enough
        shares = ", ".join(f"{half} {statistics.mean(row):.0%}" for half, row in score.items())
        print(f"{budget:.0f} s, {options.start} s a run: {shares}; missed: {dict(+missed)}")
    trials = [
        program.trial(300.0)
        for seed in range(options.unchanged)
        for program in programs(seed, options.start, options.spread, no_gain=True)
    ]
    wrong = sum(any(row.status == "faster" for row in trial.rows) for trial in trials)
    print(f"Without gains: {wrong} of {len(trials)} trials call something faster")


if __name__ == "__main__":
    main()
