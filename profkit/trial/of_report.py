"""What `profkit try` gave the kernels of a report, or the program that they are of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from profkit.analysis.report import Report
from profkit.core.text_files import read_json
from profkit.core.typed_file import known, read_file
from profkit.rules.checklist import Checklist
from profkit.rules.known_trial import NO_TRIAL, KnownTrial, fitting, folder_of
from profkit.trial.kernels import KernelTrial, tried_by_category, tried_rows
from profkit.trial.of_program import program_trial
from profkit.trial.trial_file import TRIAL, TrialFile


def with_trial(
    checklist: Checklist, report: Report, file: Path | None = None
) -> tuple[Checklist, KnownTrial]:
    """A report's checklist with the trial of its kernels in a file or else beside it, or the trial
    of the program that they are of; raises as `fitting`, and BadInput for a damaged one."""
    gpus = [gpu.name for gpu in report.summary.gpus]
    made = trial_in(file or folder_of(report.path) / TRIAL)
    ranges = {name for launch in report.summary.launches for name in launch.launch.nvtx}
    fit = trial_of(report.path, gpus, file, ranges)
    if isinstance(made, TrialFile) or not fit.rows:
        return checklist, fit
    return checklist.with_tried(tried_by_category(made), made.variant), fit


def trial_in(path: Path) -> TrialFile | KernelTrial:
    """What `profkit try` wrote; raises BadInput for a damaged file, and any other."""
    is_program = read_json(path).get("schema") == TrialFile.__struct_config__.tag
    kind: type[TrialFile | KernelTrial] = TrialFile if is_program else KernelTrial
    return read_file(path, kind, "try again with -o FILE")


def trial_of(
    place: Path, gpus: Iterable[str] = (), file: Path | None = None, ranges: Collection[str] = ()
) -> KnownTrial:
    """The trial in a file, or else beside a recording or in its run, of a program or a target,
    unless that is of another variant than the recorded `ranges`; raises as `fitting`, and BadInput
    for a damaged one."""
    path = file or folder_of(place) / TRIAL
    if file is None and not path.is_file():
        return NO_TRIAL
    made = trial_in(path)
    if isinstance(made, TrialFile):
        return program_trial(place, gpus, file)
    name = known(made.target.name) or ""
    device = known(made.fingerprint.gpu)
    gpu = (known(device.name) if device else "") or ""
    tried = KnownTrial(tried_rows(made), f"{name}:{made.variant}")
    variants = set(known(made.target.variants) or ()) & set(ranges)
    is_other = variants and made.variant not in variants
    other = f"a trial of {made.variant}, not of {', '.join(sorted(variants))}" if is_other else ""
    return fitting(tried, name, gpu, place, gpus, file=file, other=other)
