"""A program that exists in numbers alone, with a clock of its own."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from profkit.trial.evidence import Combination
from profkit.trial.outcome import outcome
from profkit.trial.run import Perturbation, Result
from profkit.trial.search import search
from profkit.trial.switch import Switch, all_switches
from profkit.trial.trial_file import TrialFile, TrialRow

SWITCHES = {switch.name: switch for switch in all_switches()}


@dataclass
class SimulatedProgram:
    """`gains` are factors by switch, `moved` relative changes of the losses by it,
    `perturbed` those by a perturbation, or by one after the other, and `chaos` how far later
    results scatter once anything is other; `more` are seconds that each run with a switch is
    longer.
    Its input takes `loading` seconds a step, a quarter more with what is `contending` for the host.
    What is `failing` is a switch, or several joined by " + " that fail together. Times vary by
    `between` from process to process, by `within` from step to step, and drift over the trial."""

    gains: dict[str, float] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=dict)
    more: dict[str, float] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    hanging: tuple[str, ...] = ()
    compiling: str = ""
    perturbed: float | Sequence[float] = 1e-6
    chaos: float = 0.0
    between: float = 0.005
    within: float = 0.02
    drift: float = 0.0
    seconds: float = 12.0
    limit: str = "device"
    loading: float = 0.0
    contending: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    seeded: bool = True
    seed: int = 0
    interrupt_after: int = 10_000
    features: frozenset[str] = frozenset(
        {"torch", "cuda", "module", "convolution", "float32", "unfused-optimizer", "loader"}
    )

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.now, self.perturbations = 0.0, 0
        self.names: list[tuple[str, ...]] = []
        self.apart: dict[tuple[str, ...], float] = {}

    def measure(
        self,
        switches: Combination,
        *,
        perturb: Perturbation = "",
        grace: float = 0.0,  # noqa: ARG002
        kept: float = 0.0,  # noqa: ARG002
    ) -> Result:
        if len(self.names) >= self.interrupt_after:
            raise KeyboardInterrupt
        names = tuple(switch.name for switch in switches)
        self.names.append(names)
        for name in (*names, " + ".join(names)):
            if name in self.hanging:
                self.now += 4 * self.seconds
                return Result(names, 4 * self.seconds, 124, failure="ended after 48 s")
            if name in self.failing:
                self.now += self.seconds / 2
                return Result(names, self.seconds / 2, 1, failure=self.failing[name])
        draw = self.random.gauss
        is_late = self.compiling in names and self.names.count(names) == 1
        step = 0.03 / math.prod(self.gains.get(name, 1.0) for name in names)
        loading = self.loading * (1.25 if self.contending in names else 1.0)
        is_loading = step < loading and "loader-workers" not in names
        step = loading if is_loading else step
        step *= math.exp(draw(0, self.between) + self.drift * self.now)
        losses = [[2.0 - 0.01 * i] for i in range(60)]
        off = sum(self.moved.get(name, 0.0) for name in names)
        if perturb:
            own = (self.perturbed,) if isinstance(self.perturbed, float) else self.perturbed
            off, self.perturbations = own[self.perturbations % len(own)], self.perturbations + 1
        off += 0.0 if self.seeded else draw(0, 0.05)
        late = self.apart.setdefault(names, draw(0, self.chaos)) if off else 0.0
        late = draw(0, self.chaos) if perturb else late
        seconds = self.seconds + sum(self.more.get(name, 0.0) for name in names)
        self.now += seconds
        return Result(
            names,
            seconds,
            unit="optimizer",
            units=60,
            times=tuple(
                step * (40.0 if is_late and place < 30 else 1.0) * math.exp(draw(0, self.within))
                for place in range(55)
            ),
            results={
                "losses": [
                    [loss * (1 + off + late * (place > 20))] for place, (loss,) in enumerate(losses)
                ]
            },
            features=self.features,
            facts=self.facts,
            applied=frozenset(names),
            limit="input" if is_loading else self.limit,  # type: ignore[arg-type]
            perturbed=perturb,
        )

    def trial(self, *names: str, budget: float = 600.0) -> TrialFile:
        chosen: list[Switch] = [SWITCHES[name] for name in names or SWITCHES]
        if not names:
            chosen = [switch for switch in chosen if switch.name != "no-change"]
        evidence = search(self.measure, chosen, budget, lambda: self.now, print)
        return outcome(evidence, ("python", "train.py"), budget)


def row(trial: TrialFile, *names: str) -> TrialRow:
    """The row of these switches."""
    return next(row for row in trial.rows if set(row.switches) == set(names))
