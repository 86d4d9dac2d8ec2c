"""The document of how kernels respond to perturbations of their launches."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.trial.responses import PERTURBATIONS
from profkit.trial.trial_file import KernelResponses, Response, TrialFile
from profkit.ui import document as doc
from profkit.ui.text import number, percent, plural


def response_blocks(trial: TrialFile) -> Iterator[doc.Block]:
    """A table for each kernel, and what was not possible."""
    if trial.kernels:
        yield doc.Heading("Kernels, perturbed")
    for kernel in trial.kernels:
        rows = tuple(map(_row, kernel.responses))
        yield doc.Table(_title(kernel), ("Perturbation", "Slowdown", "Interval", "Says"), rows)
    if trial.unperturbed:
        yield doc.bullets(line[0].upper() + line[1:] for line in trial.unperturbed)


def _title(kernel: KernelResponses) -> str:
    grid, block = (
        " x ".join(str(n) for n in size if n > 1) for size in (kernel.grid, kernel.block)
    )
    time = f"{number(kernel.seconds, 's', 3)}, {percent(kernel.share)} of timed kernels"
    launches = plural(kernel.launches, "launch")
    return f"{kernel.kernel}, {grid or 1} blocks of {block or 1}: {launches} of {time}"


def _row(response: Response) -> tuple[str, ...]:
    what = PERTURBATIONS[response.perturbation].what
    what += f" ({percent(1 / response.taken)} left)" if response.taken > 1 else ""
    if response.slowdown is None or response.low is None or response.high is None:
        return what, "", "", f"not perturbed: {response.reason}"
    interval = f"[{response.low:.2f}, {response.high:.2f}]"
    return what, f"{response.slowdown:.2f}x", interval, response.evidence or "undecided"
