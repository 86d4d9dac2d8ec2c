# ruff: noqa: ARG001, N802
"""Stands in for NVML: two GPUs, the second with a MIG instance; `LOST` names one not reached."""

import os

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
GPUS = ("GPU-aaaa-0", "GPU-bbbb-1")
MIG = "MIG-cccc-5"
LOST = os.environ.get("STAND_IN_LOST_GPU", "")


class NVMLError(Exception):
    pass


def nvmlInit():
    pass


def nvmlShutdown():
    pass


def nvmlSystemGetDriverVersion():
    if LOST == "all":
        raise NVMLError("Unknown Error")
    return "580.1"


def nvmlDeviceGetCount():
    return len(GPUS)


def nvmlDeviceGetHandleByIndex(index):
    if str(index) == LOST:
        raise NVMLError("GPU is lost")
    return GPUS[index]


def nvmlDeviceGetHandleByUUID(uuid):
    if uuid not in (*GPUS, MIG):
        raise NVMLError("Not Found")
    return uuid


def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle):
    return GPUS[1]


def nvmlDeviceGetUUID(handle):
    return handle


def nvmlDeviceGetCudaComputeCapability(handle):
    return [int(part) for part in os.environ.get("STAND_IN_CAPABILITY", "9.0").split(".")]


def nvmlDeviceGetName(handle):
    return f"made {handle}"


def nvmlDeviceGetComputeRunningProcesses(handle):
    class Process:
        pid = 424242

    return [Process] if handle == GPUS[0] else []
