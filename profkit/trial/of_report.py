"""What `profkit try` gave the kernels of a report, or the program that they are of."""

from __future__ import annotations

from pathlib import Path

from profkit.analysis.report import Report
from profkit.application.trial_file import TRIAL, TrialFile
from profkit.core.text_files import read_json
from profkit.core.typed_file import known, read_file
from profkit.rules.checklist import Checklist
from profkit.rules.known_trial import KnownTrial, fitting, folder_of
from profkit.trial.kernels import KernelTrial, tried_by_category, tried_rows
from profkit.trial.of_program import program_trial


def with_trial(
    checklist: Checklist, report: Report, file: Path | None = None
) -> tuple[Checklist, KnownTrial]:
    """A report's checklist with the trial of its kernels in a file or else beside it, or the trial
    of the program that they are of; raises as `fitting`, and BadInput for a damaged one."""
    path = file or folder_of(report.path) / TRIAL
    gpus = [gpu.name for gpu in report.summary.gpus]
    if read_json(path).get("schema") == TrialFile.__struct_config__.tag:
        return checklist, program_trial(report.path, gpus, file)
    trial = read_file(path, KernelTrial, "try again: profkit try TARGET -o FILE")
    name = known(trial.target.name) or ""
    device = known(trial.fingerprint.gpu)
    gpu = (known(device.name) if device else "") or ""
    tried = KnownTrial(tried_rows(trial), f"{name}:{trial.variant}")
    fit = fitting(tried, name, gpu, report.path, gpus, file=file)
    if not fit.rows:
        return checklist, fit
    return checklist.with_tried(tried_by_category(trial), trial.variant), fit
