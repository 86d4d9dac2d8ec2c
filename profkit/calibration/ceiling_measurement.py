"""Measurement of a GPU's ceilings in a worker process that holds the GPU's lock."""

import time
from collections.abc import Callable

from msgspec import structs

from profkit.calibration.ceilings import LABELS, CeilingFile, ceiling, cross_checked
from profkit.calibration.loads.answers import Loads, Located
from profkit.capture.gpu import VISIBLE, select
from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device
from profkit.core.lock import gpu_lock
from profkit.core.timestamp import timestamp
from profkit.hardware.gpus import find_datasheet
from profkit.timing.turns import worker

SEED = 42  # chosen: any; the same data in every measurement

_WORKER = "profkit.calibration.loads.worker"
Tell = Callable[[str, str], None]


def measure_ceilings(gpu: int | None, tell: Tell) -> CeilingFile:
    """Measure all roofs, alone on the GPU as far as profkit can tell; `tell` gets (stage, what).

    Raises EnvironmentProblem without a GPU or torch, and where none of the roofs can be measured;
    TargetFailed where a load computes something wrong.
    """
    started = time.monotonic()
    selection = select(gpu)
    state = selection.gpu
    if state is None and not selection.problem:
        raise EnvironmentProblem(f"{VISIBLE} hides every GPU", "unset it, or name one with --gpu")
    with gpu_lock(selection.lock):
        tell("start", "")
        environment = selection.variables
        with worker("the measurement", environment=environment, module=_WORKER) as turn:
            opened = turn.ask("open", Located, seed=SEED)
            answers = {}
            for number, (name, label) in enumerate(LABELS.items(), start=1):
                tell("measure", f"{number} of {len(LABELS)}, {label}")
                answers[name] = turn.ask("measure", Loads, name=name)
    left_out = {name: answer.left_out for name, answer in answers.items() if answer.left_out}
    if len(left_out) == len(LABELS):
        reasons = "; ".join(dict.fromkeys(left_out.values()))
        raise EnvironmentProblem(
            f"no ceiling can be measured here: {reasons}", "see `profkit doctor`"
        )
    device, machine = opened.fingerprint.gpu or Device(), opened.machine
    sheet = None
    if not device.mig:
        sheet, _ = find_datasheet(
            str(device.name), machine.cc, machine.sm_count, machine.memory_bytes
        )
    rows = {
        name: ceiling(name, answer.loads, sheet, machine.sm_count)
        for name, answer in answers.items()
        if name not in left_out
    }
    return CeilingFile(
        gpu=structs.replace(device, uuid=device.uuid or None),
        ceilings=tuple(cross_checked(rows).values()),
        created=timestamp(),
        seconds=time.monotonic() - started,
        left_out=left_out,
        fingerprint=opened.fingerprint,
        other_processes=len(state.processes) if state else 0,
    )
