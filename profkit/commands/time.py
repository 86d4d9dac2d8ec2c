"""`profkit time`: latencies with confidence intervals, and verdicts on them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Meta

from profkit.commands import groups, options
from profkit.commands.kinds import Latencies, Script
from profkit.commands.options import INCONCLUSIVE, format_of
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.timing.latency_format import LatencyFile
    from profkit.timing.measurement import Subject, TimingPlan
    from profkit.timing.results import Thresholds

    Timed = tuple[tuple[Subject, ...], tuple[str, ...]]

_GATE_FAILED = 1
_GATES = {"regression": "REGRESSED", "inconclusive": "INCONCLUSIVE"}
_WHILE_TIMING = (
    "variant", "samples", "blocks", "warmup_ms", "timer", "cache", "seed", "device", "gpu",
)  # fmt: skip
_OUTPUTS = ("--save", "--out", "--output", "-o", "--badge", "--format")


@dataclass(frozen=True)
class Subjects:
    """What is timed, and what is compared.

    Arguments:
      targets ([TARGET[:VARIANT,...]]... [-- ARGUMENT...]): Target scripts (.py), each with the
        variants to time; their arguments after --.

    Options:
      variant (NAME): Only this variant; repeatable.
      compare (A,B,...): Compare variants with the first of them, or targets with TARGET:VARIANT.
      against (GITREF): Compare with the target at this commit.
    """

    targets: tuple[Script, ...] = ()
    variant: tuple[str, ...] = ()
    compare: str | None = None
    against: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How often and how variants are timed.

    Options:
      samples (N): Samples per variant; a comparison takes at least 30 per block.
      blocks (N): Interleaved blocks per variant (default: 8 for a comparison).
    """

    samples: groups.Count = 100
    blocks: groups.Count | None = None
    warmup_ms: Annotated[float, Meta(ge=0)] = 500
    method: groups.TimingMethod
    seed: groups.Number = 42


@dataclass(frozen=True)
class Files:
    """Files that are written besides the output.

    Options:
      out (--save FILE): Save samples and statistics as JSON, for `--from` and `profkit compare`.
      badge (FILE): Write the verdict as a badge (.svg).
    """

    out: Path | None = None
    badge: Path | None = None

    def check(self) -> None:
        """Raise UsageError for a name that another format has."""
        if self.out is not None:
            format_of(self.out, ("json",), None)
        if self.badge is not None and self.badge.suffix != ".svg":
            raise UsageError(f"{self.badge}: not an .svg file", "use the extension .svg")

    def write(self, report: LatencyFile, *, force: bool) -> None:
        """Write those that are asked for."""
        from profkit.core.typed_file import encode
        from profkit.timing.latency_view import badge

        if self.out is not None:
            options.put(encode(report), self.out, force=force)
        if self.badge is not None:
            options.put(badge(report), self.badge, force=force)


def time(
    context: typer.Context,
    *,
    subjects: Subjects,
    sampling: Sampling,
    verdicts: groups.VerdictOptions,
    fail_on: str | None = None,
    from_file: Latencies | None = None,
    unit: groups.Unit | None = None,
    explain: bool = False,
    files: Files,
    output: groups.Output[groups.TextFormat],
    where: groups.OnDevice,
) -> None:
    """Time a target's variants, and test whether one is faster.

    Variants are checked against the reference, then timed in interleaved blocks. Without --fail-on,
    an inconclusive comparison exits with 3; an invalid measurement always exits with 4.

    Options:
      fail_on (GATE,...): Gates: exit 1 on regression, inconclusive.
      from_file (--from FILE): Read saved samples instead of timing.
      explain: Show the criteria of verdicts.

    Examples:
      profkit time targets/sdpa_s512.py --variant flash --variant cudnn
      profkit time targets/sdpa_s512.py --compare sdpa,custom --fail-on regression
      profkit time targets/sdpa_s512.py:custom --against HEAD~1
      profkit time --compare targets/a.py:custom targets/b.py:custom
      profkit time --from samples.json --unit us
    """
    gates = _gates(fail_on)
    if gates is not None and not subjects.compare and not subjects.against:
        against_too = "" if from_file else " or --against GITREF"
        raise UsageError("--fail-on judges a comparison", f"add --compare A,B{against_too}")
    thresholds = verdicts.thresholds()
    files.check()
    if from_file is not None:
        if subjects.targets or subjects.against:
            raise UsageError("--from reads a file, without timing", "leave out the targets")
        _refuse_timing_options(context)
        report = _saved(from_file, unit, subjects.compare, thresholds)
    else:
        words = subjects.targets
        count = len(words) - options.words_after_dashes(context)
        with options.interruptible(), ExitStack() as stack:
            from profkit.timing import measurement

            timed, labels = _subjects(subjects, words[:count], stack)
            plan = measurement.TimingPlan(
                subjects=timed,
                arguments=words[count:],
                settings=sampling.method.settings(sampling.warmup_ms),
                samples=sampling.samples,
                margin=thresholds.margin,
                seed=sampling.seed,
                device=where.device,
                gpu=where.gpu,
            )
            plan = _in_blocks(plan, sampling.blocks, compared=bool(labels))
            if options.is_explicit(context, "samples"):
                _warn_of_rounding(plan, sampling.samples)
            with stage_progress() as show:
                timing = measurement.time_targets(plan, show)
                show("statistics", "")
                report = measurement.latency_report(
                    timing, plan, labels=labels, thresholds=thresholds
                )
    from profkit.timing.latency_view import latency_document

    output.show(
        report,
        lambda: latency_document(
            report,
            () if from_file else _command(),
            explain=explain,
            sentences=output.format == "markdown",
        ),
        dense=True,
    )
    files.write(report, force=output.force)
    _judge(report, gates)


def _refuse_timing_options(context: typer.Context) -> None:
    """Raise UsageError for an option of a measurement, which --from would ignore."""
    for name in _WHILE_TIMING:
        if options.is_explicit(context, name):
            flag = f"--{name.replace('_', '-')}"
            remedy = "use --compare A,B" if name == "variant" else f"leave out {flag}"
            raise UsageError(f"{flag} doesn't apply to --from, which times nothing", remedy)


def _warn_of_rounding(plan: TimingPlan, samples: int) -> None:
    """Say that more samples are taken than --samples asks for, and why."""
    count = plan.blocks * plan.samples_in_a_block
    if count == samples:
        return
    why = f"{plan.blocks} blocks of {plan.samples_in_a_block}"
    if plan.samples > samples:
        why += ", the fewest samples per block for a comparison"
    options.warn(f"--samples {samples} rounded up to {count} per variant: {why}")


def _judge(report: LatencyFile, gates: Sequence[str] | None) -> None:
    """End with the exit code that verdicts call for; raises EnvironmentProblem, typer.Exit."""
    from profkit.timing.results import Verdict

    for pair in report.pairs:
        if pair.comparison.verdict is Verdict.INVALID:
            raise EnvironmentProblem(
                f"invalid measurement: {'; '.join(pair.comparison.details)}",
                "see `profkit doctor`, and time again",
            )
    for row in report.series:
        if row.throttled_throughout:
            raise EnvironmentProblem(
                f"{row.label}: the GPU was throttled throughout "
                f"({', '.join(row.throttled_throughout)})",
                "let it cool or lift the limit, see `profkit doctor`",
            )
    verdicts = {pair.comparison.verdict.name for pair in report.pairs}
    if verdicts & set(gates or ()):
        raise typer.Exit(_GATE_FAILED)
    if gates is None and Verdict.INCONCLUSIVE.name in verdicts:
        raise typer.Exit(INCONCLUSIVE)


def _gates(fail_on: str | None) -> tuple[str, ...] | None:
    if fail_on is None:
        return None
    names, remedy = options.names_in(fail_on), f"use {', '.join(_GATES)}"
    if not names:
        raise UsageError(f"--fail-on {fail_on!r} names no gate", remedy)
    for name in names:
        if name not in _GATES:
            raise UsageError(f"--fail-on {name!r} is no gate", remedy)
    return tuple(_GATES[name] for name in names)


def _in_blocks(plan: TimingPlan, blocks: int | None, *, compared: bool) -> TimingPlan:
    """The plan with its blocks, as many samples in each as a comparison needs."""
    from profkit.timing.measurement import BLOCKS, paired
    from profkit.timing.verdict import FEWEST_BLOCKS

    if not compared:
        return replace(plan, blocks=min(plan.samples, blocks or BLOCKS))
    if blocks is not None and blocks < FEWEST_BLOCKS:
        raise UsageError("a comparison needs at least two blocks", "raise --blocks")
    return paired(replace(plan, blocks=blocks or BLOCKS))


def _subjects(chosen: Subjects, scripts: Sequence[str], stack: ExitStack) -> Timed:
    """What to time, and the labels to compare, the reference first."""
    from profkit.timing.measurement import subject_of

    compare, against = chosen.compare, chosen.against
    if compare is not None and ".py" in compare:
        if against or not scripts:
            raise UsageError(
                "--compare with a target needs other targets",
                "profkit time --compare targets/a.py:custom targets/b.py:custom",
            )
        return _several([compare, *scripts], chosen.variant)
    if not scripts:
        raise UsageError("nothing to time", "give a target script, or --from FILE")
    if len(scripts) > 1:
        raise UsageError("several targets need --compare", "profkit time --compare A.py:x B.py:y")
    subject = subject_of(scripts[0])
    subject = replace(subject, variants=subject.variants + chosen.variant)
    if against is not None:
        if compare is not None:
            raise UsageError("--against and --compare exclude each other", "leave one out")
        return _two_commits(subject, against, stack)
    if compare is None:
        return (subject,), ()
    names = options.names_in(compare)
    if len(names) < 2 or len(set(names)) < len(names):
        message = f"--compare {compare!r}: not two or more different variants"
        raise UsageError(message, "--compare sdpa,custom")
    return (replace(subject, variants=names),), names


def _several(words: Sequence[str], variants: Sequence[str]) -> Timed:
    from profkit.timing.measurement import subject_of

    subjects = []
    for word in words:
        subject = subject_of(word)
        chosen = subject.variants or tuple(variants)
        if len(chosen) != 1:
            raise UsageError(f"{word}: compared targets name one variant each", f"{word}:VARIANT")
        subjects.append(replace(subject, variants=chosen, label=subject.path.stem))
    labels = {(subject.label, subject.variants) for subject in subjects}
    if len({subject.path.resolve() for subject in subjects}) == 1:
        subjects = [replace(subject, label="") for subject in subjects]
    if len(labels) < len(subjects):
        subjects = [
            replace(subject, label=f"{number}/{subject.path.stem}")
            for number, subject in enumerate(subjects, start=1)
        ]
    return tuple(subjects), tuple(subject.labeled(subject.variants[0]) for subject in subjects)


def _two_commits(subject: Subject, reference: str, stack: ExitStack) -> Timed:
    from profkit.timing.worktree import checked_out

    if len(subject.variants) != 1:
        raise UsageError(
            "--against compares one variant with itself", f"name it: {subject.path}:VARIANT"
        )
    checkout = stack.enter_context(checked_out(subject.path, reference))
    folder = checkout.mirrored(Path.cwd())
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    before = replace(
        subject,
        path=checkout.file,
        label=checkout.commit,
        root=folder if folder.is_dir() else checkout.root,
        python_path=os.pathsep.join(
            str(checkout.mirrored(Path(entry))) for entry in entries if entry
        ),
        foreign=checkout.top,
    )
    sides = before, replace(subject, path=subject.path.resolve(), label="this tree")
    return sides, tuple(side.labeled(side.variants[0]) for side in sides)


def _saved(
    path: Path, unit: groups.Unit | None, compare: str | None, thresholds: Thresholds
) -> LatencyFile:
    """The report of a file, with the comparison that `compare` names or else the run's own.

    The A/A floor is the largest known of these: the file's own, and those saved of their GPUs. A
    file doesn't say whether its series come from one process, so that of two counts too.
    """
    from profkit.timing.floor import read_floor
    from profkit.timing.latency import latency_report
    from profkit.timing.latency_file import read_latencies

    saved = read_latencies(path, unit)
    latencies = {series.label: series for series in saved.latencies}
    names = saved.compared if compare is None else _named(compare, path, tuple(latencies))
    shares = [] if saved.floor is None else [saved.floor]
    for setup in {latencies[name].measured_with for name in names}:
        if floor := read_floor(*setup):
            shares += [floor.within_process, floor.between_processes]
    return latency_report(saved, names, thresholds=thresholds, floor=max(shares, default=None))


def _named(compare: str, path: Path, labels: Sequence[str]) -> tuple[str, ...]:
    """The series that --compare names, the reference first; raises UsageError unless there."""
    from profkit.ui.text import literal

    names, known = options.names_in(compare), literal(", ".join(labels))
    for name in names:
        if name not in labels:
            raise UsageError(f"{path} has no {name!r}", f"it has {known}")
    if len(set(names)) < max(2, len(names)):
        message = f"--compare {compare!r}: not two or more different series"
        raise UsageError(message, f"{path} has {known}")
    return names


def _command() -> tuple[str, ...]:
    """This command line without where its output went."""
    from profkit.timing.latency_view import without

    words = sys.argv[1:]
    own = words.index("--") if "--" in words else len(words)
    return ("profkit", *without(words[:own], _OUTPUTS), *words[own:])
