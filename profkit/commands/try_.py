"""`profkit try`: switches turned on from outside, measured against the unchanged program."""

from __future__ import annotations

import os
from typing import Literal

import typer

from profkit.commands import groups
from profkit.commands.kinds import Program
from profkit.commands.options import interruptible, warn, words_after_dashes
from profkit.core.errors import TargetFailed, UsageError
from profkit.ui.progress import stage_progress

TryFormat = Literal["terminal", "brief", "markdown", "json", "html"]
_BUDGET = 600.0  # s, chosen: a coffee


def try_(
    context: typer.Context,
    program: list[Program] | None = None,
    *,
    budget: str | None = None,
    switch: tuple[str, ...] = (),
    list_all: bool = False,
    in_copy: bool = False,
    output: groups.Output[TryFormat],
) -> None:
    """Run a program with switches that may make it faster, and prove which do.

    The program runs many times, interleaved with unchanged runs, without a change of its files:
    switches are turned on from outside. What changes its results is never called faster.

    Arguments:
      program (-- PROGRAM ARGUMENT...): A program, after --.

    Options:
      budget (TIME): Time limit in all (default: 10m).
      switch (--switch NAME): Only this switch; repeatable.
      list_all (--list): List all switches, what each needs and changes.
      in_copy: Run it in a copy of this folder.

    Examples:
      profkit try -- python train.py
      profkit try --budget 5m --in-copy -- python train.py --epochs 1
      profkit try --switch compile --switch bf16 -- python train.py
      profkit try --list
    """
    from profkit.core.duration import parse_duration
    from profkit.trial.switch import all_switches, chosen_switches
    from profkit.trial.trial import Subject, try_program
    from profkit.trial.view import switches_document, trial_document

    switches = chosen_switches(switch)
    if list_all:
        output.lay_out(switches_document(all_switches()))
        return
    if not program or words_after_dashes(context) < len(program):
        raise UsageError("no program is given", "write it after --: profkit try -- python x.py")
    seconds = parse_duration("--budget", budget) or _BUDGET
    warn(f"the program runs many times, for {seconds:.0f} s at most")
    subject = Subject(tuple(map(str, program)), dict(os.environ), in_copy)
    with interruptible(), stage_progress() as tell:
        result = try_program(subject, switches, seconds, tell)
    output.show(result, lambda: trial_document(result))
    if result.interrupted:
        raise typer.Exit(130)
    if result.failure:
        raise TargetFailed(f"the unchanged program failed: {result.failure}")
