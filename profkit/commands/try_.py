"""`profkit try`: switches turned on from outside, measured against the unchanged program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from profkit.commands import groups
from profkit.commands.kinds import Program
from profkit.commands.options import interruptible, put, warn, words_after_dashes
from profkit.core.errors import TargetFailed, UsageError
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.trial.trial_file import TrialFile

TryFormat = Literal["terminal", "brief", "markdown", "json", "html"]
_BUDGET = 600.0  # s, chosen: a coffee
_WARMUP = 0.1  # s of each variant, chosen: there are some thirty of one kernel


def try_(
    context: typer.Context,
    program: list[Program] | None = None,
    *,
    budget: str | None = None,
    switch: tuple[str, ...] = (),
    list_all: bool = False,
    in_copy: bool = False,
    from_run: Path | None = None,
    output: groups.Output[TryFormat],
) -> None:
    """Run a program or target with switches that may make it faster, and prove which do.

    The program runs many times, unedited: switches are turned on from outside. What changes its
    results is never called faster. Kernels that a target's variant compiles are compiled with other
    options, constants and small edits, and checked against the reference. Exits with 3 if nothing
    is decided.

    Arguments:
      program ([TARGET:VARIANT] [-- PROGRAM ARGUMENT...]): A program, after --; or a target script
        (.py) and its variant (default: the first), its arguments after --.

    Options:
      budget (TIME): Time limit in all (default: 10m).
      switch (--switch NAME): Only this switch; repeatable.
      list_all (--list): List all switches, what each needs and changes.
      in_copy: Run it in a new copy of this folder each time.
      from_run (--from RUN): Try first what this run's plan names, and keep there what is proven.

    Examples:
      profkit try -- python train.py
      profkit try --budget 5m --in-copy -- python train.py --epochs 1
      profkit try --switch compile --switch bf16 -- python train.py
      profkit try --from runs/train -- python train.py
      profkit try --list
      profkit try targets/pair.py:before -- no_unrolling
    """
    from profkit.core.duration import parse_duration

    seconds = parse_duration("--budget", budget) or _BUDGET
    if program and len(program) - words_after_dashes(context) == 1:
        _try_kernels(program, switch, seconds, output)
        return
    from profkit.capture.piped import repeated_input
    from profkit.core.typed_file import encode
    from profkit.runs.run import program_name
    from profkit.trial.switch import all_switches, chosen_switches
    from profkit.trial.trial import Subject, try_program
    from profkit.trial.trial_file import TRIAL
    from profkit.trial.view import switches_document, trial_document

    known = all_switches(warn)
    switches = chosen_switches(switch, known)
    if list_all:
        if output.format == "json":
            raise UsageError("--list has no JSON", "take --format brief or markdown")
        output.lay_out(switches_document(known))
        return
    if not program or words_after_dashes(context) < len(program):
        raise UsageError("no program is given", "write it after --: profkit try -- python x.py")
    first = _planned(from_run, program_name(program)) if from_run else ()
    files = "" if in_copy else "; but for temporary files, what its Python writes is put back"
    warn(f"the program runs many times, for {seconds:.0f} s at most{files}")
    subject = Subject(tuple(map(str, program)), dict(os.environ), in_copy)
    with interruptible(), repeated_input(warn), stage_progress() as tell:
        result = try_program(subject, switches, seconds, tell, first)
    if from_run and not result.failure:
        put(encode(result), from_run / TRIAL, force=True)
    if not result.failure or result.interrupted or output.format == "json":
        output.show(result, lambda: trial_document(result))
    _end(result)


def _end(result: TrialFile) -> None:
    """End the command with the status of its result."""
    if result.interrupted:
        raise typer.Exit(130)
    if result.failure:
        from profkit.trial.view import written_words

        if result.written:
            warn(written_words(result))
        raise TargetFailed(f"the unchanged program failed: {result.failure}")
    if not result.is_decided:
        raise typer.Exit(3)


def _planned(folder: Path, name: str) -> tuple[str, ...]:
    """The switches that the plan of a recorded application names, in its order.

    Raises UsageError for the run of a program of another name.
    """
    from profkit.application.answer import answer
    from profkit.application.run import read_run

    run = read_run(folder)
    if run.name != name:
        raise UsageError(f"{folder}: a run of {run.name}, not of {name}", "name its own run")
    return tuple(name for item in answer(run).plan for name in item.switches)


def _try_kernels(
    words: list[Program], only: tuple[str, ...], seconds: float, output: groups.Output[TryFormat]
) -> None:
    from profkit.timing.measurement import TimingPlan, subject_of
    from profkit.timing.stopwatch import Settings
    from profkit.trial.kernels import kernel_document, try_kernels

    subject = subject_of(str(words[0]))
    if len(subject.variants) > 1:
        raise UsageError(f"{words[0]}: several variants", "name one")
    plan = TimingPlan(
        subjects=(subject,), arguments=tuple(map(str, words[1:])), settings=Settings(warmup=_WARMUP)
    )
    variant = subject.variants[0] if subject.variants else None
    with interruptible(), stage_progress() as tell:
        trial = try_kernels(plan, variant, seconds, tell, only)
    output.show(trial, lambda: kernel_document(trial))
