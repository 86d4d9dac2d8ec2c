"""`profkit time`: latencies that can be believed, and verdicts on them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from profkit.commands.formats import TextFormat, format_of
from profkit.commands.options import (
    FORMAT,
    OutputOption,
    interruptible,
    is_given,
    names_in,
    put,
    words_after_dashes,
)
from profkit.commands.timing_options import (
    CacheOption,
    DeviceOption,
    GpuOption,
    MarginOption,
    Preset,
    PresetOption,
    SeedOption,
    TimerOption,
    Unit,
    UnitOption,
    WarmupOption,
)
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.ui.picture import check_picture
from profkit.ui.progress import Teller

if TYPE_CHECKING:
    from profkit.timing.latency import LatencyReport
    from profkit.timing.latency_format import Latency
    from profkit.timing.measurement import Subject, TimingPlan
    from profkit.timing.results import Thresholds
    from profkit.timing.worktree import Checkout

_GATE_FAILED, _INCONCLUSIVE = 1, 3
_FEWEST_BLOCKS = 2
_GATES = {"regression": "REGRESSED", "inconclusive": "INCONCLUSIVE"}


def time(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET[:VARIANT,...]]... [-- ARGUMENT...]",
            help="Target scripts (.py), each with the variants to time; then arguments for them.",
        ),
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this variant; may be repeated.")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,... | TARGET:VARIANT",
            help="Variants to compare with the first, or a target to compare the others with.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="GITREF", help="Compare with the target as this commit has it."),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Samples a variant; to compare, 30 a block or more."),
    ] = 100,
    blocks: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Blocks taken in turns: 8.")
    ] = None,
    warmup_ms: WarmupOption = 500,
    timer: TimerOption = "events",
    cache: CacheOption = "cold",
    seed: SeedOption = 42,
    margin: MarginOption = None,
    preset: PresetOption = "default",
    fail_on: Annotated[
        str | None, typer.Option(metavar="WHAT,...", help="Exit 1 on regression, inconclusive.")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Read saved samples instead of timing."),
    ] = None,
    unit: UnitOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what verdicts ask for.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Keep samples and all as JSON.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw samples and intervals: .png, .svg or .pdf."),
    ] = None,
    badge: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the verdict as a small .svg.")
    ] = None,
    format: Annotated[TextFormat, FORMAT] = "terminal",
    output: OutputOption = None,
    device: DeviceOption = None,
    gpu: GpuOption = None,
) -> None:
    """Time a target's variants, with intervals that hold, and say whether one is faster.

    Variants take turns in blocks; each is checked against the reference first. Without --fail-on,
    an inconclusive comparison exits with 3; a measurement that can't be believed always with 4.

    Examples:

      profkit time targets/sdpa_s512.py --variant flash --variant cudnn

      profkit time targets/sdpa_s512.py --compare sdpa,custom --fail-on regression

      profkit time targets/sdpa_s512.py:custom --against HEAD~1

      profkit time --compare targets/a.py:custom targets/b.py:custom

      profkit time --from samples.json --unit us
    """
    gates = _gates(fail_on)
    thresholds = thresholds_of(preset, margin)
    _check_names(out, plot, badge)
    if from_file is not None:
        if targets or against:
            raise UsageError("--from reads a file and times nothing", "leave the targets out")
        report = _saved(from_file, unit, compare, thresholds)
    else:
        words, count = targets or [], len(targets or []) - words_after_dashes(context)
        with interruptible(), ExitStack() as stack:
            from profkit.timing import stopwatch
            from profkit.timing.measurement import TimingPlan

            subjects, labels = _subjects(words[:count], variant or [], compare, against, stack)
            plan = TimingPlan(
                subjects=subjects,
                arguments=tuple(words[count:]),
                settings=stopwatch.Settings(
                    stopwatch.Timer(timer), stopwatch.Cache(cache), warmup_ms / 1e3
                ),
                samples=samples,
                margin=thresholds.margin,
                seed=seed,
                device=device,
                gpu=gpu,
            )
            plan = _in_blocks(plan, blocks, compared=labels is not None)
            if plan.samples > samples and is_given(context, "samples"):
                typer.echo(
                    f"profkit: takes {plan.samples} samples a variant, not {samples}: a comparison "
                    f"needs {plan.samples_in_a_block} in each of {plan.blocks} blocks",
                    err=True,
                )
            report = _measured(plan, labels, thresholds, _command())
    _write(report, format, output, explain=explain)
    _keep(report, out, plot, badge)
    _judge(report, gates)


def thresholds_of(preset: Preset, margin: str | None) -> Thresholds:
    """The preset's thresholds, with another margin where one is given."""
    from profkit.timing.results import PRESETS

    chosen = PRESETS[preset]
    return chosen if margin is None else structs.replace(chosen, margin=share(margin, "--margin"))


def share(text: str, option: str) -> float:
    """`1%` or `0.01` as a share; raises UsageError for anything that is no share below 1."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise UsageError(f"{option} {text!r} is not a share", "write 1% or 0.01")
    return value


def _write(
    report: LatencyReport, format: TextFormat, output: Path | None, *, explain: bool = False
) -> None:
    """Write a report in a format, to a file or stdout."""
    from profkit.timing.latency_view import latency_markdown, latency_terminal

    if format == "json":
        from profkit.timing.latency_json import latency_json

        text = latency_json(report)
    elif format == "markdown":
        text = latency_markdown(report)
    else:
        text = latency_terminal(report, explain=explain, to_file=output is not None)
    put(text, output)


def _judge(report: LatencyReport, gates: Sequence[str] | None) -> None:
    """End with the exit code that verdicts call for; raises EnvironmentProblem, typer.Exit."""
    from profkit.timing.results import Verdict

    invalid = [pair for pair in report.pairs if pair.comparison.verdict is Verdict.INVALID]
    if invalid:
        raise EnvironmentProblem(
            f"not a measurement to believe: {'; '.join(invalid[0].comparison.details)}",
            "see `profkit doctor`, and time again",
        )
    held = [one for one in report.timed if one.throttled_throughout]
    if held:
        raise EnvironmentProblem(
            f"{held[0].label}: the GPU was throttled throughout "
            f"({', '.join(held[0].throttled_throughout)})",
            "let it cool or lift the limit, see `profkit doctor`",
        )
    verdicts = {pair.comparison.verdict.name for pair in report.pairs}
    if verdicts & set(gates or ()):
        raise typer.Exit(_GATE_FAILED)
    if gates is None and Verdict.INCONCLUSIVE.name in verdicts:
        raise typer.Exit(_INCONCLUSIVE)


def _gates(fail_on: str | None) -> tuple[str, ...] | None:
    if fail_on is None:
        return None
    names = names_in(fail_on)
    if not names:
        raise UsageError(f"--fail-on {fail_on!r} names no gate", f"use {', '.join(_GATES)}")
    for name in names:
        if name not in _GATES:
            raise UsageError(f"--fail-on {name!r} is no gate", f"use {', '.join(_GATES)}")
    return tuple(_GATES[name] for name in names)


def _in_blocks(plan: TimingPlan, blocks: int | None, *, compared: bool) -> TimingPlan:
    """The plan with its blocks, as many samples in each as a comparison needs."""
    from profkit.timing.measurement import BLOCKS, COMPARED_BLOCKS, paired

    if not compared:
        return replace(plan, blocks=min(plan.samples, blocks or BLOCKS))
    if blocks is not None and blocks < _FEWEST_BLOCKS:
        raise UsageError("a comparison needs at least two blocks", "raise --blocks")
    return paired(replace(plan, blocks=blocks or COMPARED_BLOCKS))


def _subjects(
    scripts: Sequence[str],
    variants: Sequence[str],
    compare: str | None,
    against: str | None,
    stack: ExitStack,
) -> tuple[tuple[Subject, ...], tuple[str, ...] | None]:
    from profkit.timing.measurement import subject_of

    if compare is not None and ".py" in compare:
        if against or not scripts:
            raise UsageError(
                "--compare with a target needs others to compare with it",
                "profkit time --compare targets/a.py:custom targets/b.py:custom",
            )
        return _several([compare, *scripts], variants)
    if not scripts:
        raise UsageError("nothing to time", "give a target script, or --from FILE")
    if len(scripts) > 1:
        raise UsageError("several targets need --compare", "profkit time --compare A.py:x B.py:y")
    subject = subject_of(scripts[0])
    subject = replace(subject, variants=subject.variants + tuple(variants))
    if against is not None:
        if compare is not None:
            raise UsageError("--against and --compare are two comparisons", "leave one out")
        return _two_commits(subject, against, stack)
    if compare is None:
        return (subject,), None
    names = names_in(compare)
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            f"--compare {compare!r} does not name two variants or more, each once",
            "--compare sdpa,custom",
        )
    return (replace(subject, variants=names),), names


def _several(
    words: Sequence[str], variants: Sequence[str]
) -> tuple[tuple[Subject, ...], tuple[str, ...]]:
    from profkit.timing.measurement import subject_of

    subjects = []
    for word in words:
        subject = subject_of(word)
        chosen = subject.variants or tuple(variants)
        if len(chosen) != 1:
            raise UsageError(f"{word}: compared targets name one variant each", f"{word}:VARIANT")
        subjects.append(replace(subject, variants=chosen, label=subject.path.stem))
    labels = [(subject.label, subject.variants) for subject in subjects]
    if len({subject.path.resolve() for subject in subjects}) == 1:
        subjects = [replace(subject, label="") for subject in subjects]
    if len(set(labels)) < len(labels):
        subjects = [
            replace(subject, label=f"{letter}/{subject.path.stem}")
            for letter, subject in enumerate(subjects, start=1)
        ]
    return tuple(subjects), tuple(one.labelled(one.variants[0]) for one in subjects)


def _two_commits(
    subject: Subject, reference: str, stack: ExitStack
) -> tuple[tuple[Subject, ...], tuple[str, ...]]:
    from profkit.timing.worktree import checked_out

    if len(subject.variants) != 1:
        raise UsageError(
            "--against compares one variant with itself", f"name it: {subject.path}:VARIANT"
        )
    there = stack.enter_context(checked_out(subject.path, reference))
    name = subject.variants[0]
    folder = there.mirrored(Path.cwd())
    before = replace(
        subject,
        path=there.file,
        label=there.commit,
        root=folder if folder.is_dir() else there.root,
        python_path=_mirrored_python_path(there),
        foreign=there.top,
    )
    after = replace(subject, path=subject.path.resolve(), label="this tree")
    return (before, after), (f"{there.commit}:{name}", f"this tree:{name}")


def _mirrored_python_path(there: Checkout) -> str:
    """PYTHONPATH with what lies in the working tree taken from the checkout."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(str(there.mirrored(Path(entry))) for entry in entries if entry)


def _measured(
    plan: TimingPlan,
    labels: tuple[str, ...] | None,
    thresholds: Thresholds,
    command: tuple[str, ...],
) -> LatencyReport:
    from profkit.timing.measurement import latency_report, time_targets

    with Teller() as teller:
        timing = time_targets(plan, teller.tell)
        teller.tell("statistics", "")
        return latency_report(
            timing, plan, labels=labels or (), thresholds=thresholds, command=command
        )


def _saved(
    path: Path, unit: Unit | None, compare: str | None, thresholds: Thresholds
) -> LatencyReport:
    from profkit.timing.latency import latency_report
    from profkit.timing.latency_file import read_latencies

    saved = read_latencies(path, unit)
    latencies = {one.label: one for one in saved.latencies}
    names = () if compare is None else _named(compare, path, tuple(latencies))
    sides = [latencies[name] for name in names]
    floor = _kept_floor(sides, saved.floor)
    return latency_report(saved, names, thresholds=thresholds, floor=floor)


def _named(compare: str, path: Path, labels: Sequence[str]) -> tuple[str, ...]:
    """The series that --compare names, the baseline first; raises UsageError unless there."""
    from profkit.ui.text import literal

    names = names_in(compare)
    for name in names:
        if name not in labels:
            raise UsageError(f"{path} has no {name!r}", f"it has {literal(', '.join(labels))}")
    if len(set(names)) < max(2, len(names)):
        raise UsageError(
            f"--compare {compare!r} names no two series, or one twice",
            f"{path} has {literal(', '.join(labels))}",
        )
    return names


def _kept_floor(sides: Sequence[Latency], told: float | None) -> float | None:
    """The largest A/A floor known of these: the file's own, and those kept of their GPUs.

    A file doesn't say whether its series come from one process, so that of two counts too.
    """
    from profkit.timing.floor import read_floor

    setups = {side.measured_with for side in sides}
    kept = [floor for setup in setups if (floor := read_floor(*setup))]
    known = [share for one in kept for share in (one.within_process, one.between_processes)]
    return max(known + ([] if told is None else [told]), default=None)


def _keep(
    report: LatencyReport, out: Path | None, plot: Path | None, badge_file: Path | None
) -> None:
    if out is not None:
        from profkit.timing.latency_json import latency_json

        put(latency_json(report), out)
    if plot is not None or badge_file is not None:
        from profkit.timing.latency_plot import badge, plot_latencies

        if plot is not None:
            plot_latencies(report, plot)
        if badge_file is not None:
            put(badge(report), badge_file)


def _check_names(out: Path | None, plot: Path | None, badge: Path | None) -> None:
    """Refuse names that no picture or JSON can have before anything is measured."""
    if out is not None:
        format_of(out, ("json",), None)
    if plot is not None:
        check_picture(plot)
    if badge is not None and badge.suffix != ".svg":
        raise UsageError(f"{badge}: a badge is an .svg", "name it so")


_OUTPUTS = ("--out", "--output", "-o", "--plot", "--badge", "--format")


def _command() -> tuple[str, ...]:
    """This command line without where its output went."""
    from profkit.timing.latency_view import without

    words = sys.argv[1:]
    own = words.index("--") if "--" in words else len(words)
    return ("profkit", *without(words[:own], _OUTPUTS), *words[own:])
