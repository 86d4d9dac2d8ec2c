"""`profkit diff` of two applications: their steps, parts of the step, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from profkit.commands.options import show
from profkit.core.errors import UsageError

_KERNELS_SHOWN = 10  # chosen: parts and kernels fit a screen
_OPEN = 3  # exit code of what can't be decided


def diff_applications(
    before: Path,
    after: Path,
    top: int | None,
    format: str,
    output: Path | None,
    fail_on: Sequence[str],
    *,
    everything: bool,
) -> None:
    """Compare two runs of applications, and exit with 1 or 3 if a gate fails."""
    from profkit.application.run import read_run
    from profkit.comparison import application_view as view
    from profkit.comparison.application import compare_applications
    from profkit.comparison.gates import GateKind, parse_gates
    from profkit.timing.results import Verdict

    kinds = {gate.kind for gate in parse_gates(fail_on)}
    if others := kinds - {GateKind.regression, GateKind.inconclusive}:
        raise UsageError(
            f"--fail-on {min(others)} is not for applications", "use regression, inconclusive"
        )
    if format not in {"terminal", "markdown", "json"}:
        raise UsageError(
            f"two applications can't be written as {format}", "use terminal, markdown or json"
        )
    diff = compare_applications(read_run(before), read_run(after))
    names = (str(before), str(after))
    shown = _KERNELS_SHOWN if top is None else top
    show(
        view.application_diff_result(diff),
        lambda: view.application_diff_document(diff, names, shown, everything=everything),
        format,
        output,
    )
    verdict = diff.within.verdict
    if verdict is Verdict.REGRESSED and GateKind.regression in kinds:
        raise typer.Exit(1)
    if verdict is Verdict.INCONCLUSIVE and GateKind.inconclusive in kinds:
        raise typer.Exit(_OPEN)
