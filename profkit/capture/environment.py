"""The environment of a measurement: locked as far as it can be, and recorded."""

import hashlib
import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from profkit.capture.gpu import SETTINGS, NoDriver, answer, connection, settings
from profkit.capture.tools import installed_version
from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import Model, plain

WORKSPACE = ":4096:8"
_SEED_END = 2**32  # numpy.random.seed takes 32 bits
_UNLOCKING = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")


def lock(seed: int, *, fill_new_memory: bool = False) -> None:
    """Fix what changes results or kernels from run to run, before CUDA starts.

    TF32 off, deterministic algorithms (a warning where an operation has none), cuDNN without its
    benchmark, the cuBLAS workspace, and the seeds of random, NumPy and torch. `fill_new_memory`
    makes torch fill every new tensor with NaN, so that what a variant forgets to write shows; not
    for a profiled run, where each fill is a kernel more.

    Raises EnvironmentProblem that names what did not take effect.
    """
    import torch

    if not 0 <= seed < _SEED_END:
        raise EnvironmentProblem(f"seed {seed} is out of range", "use 0 to 2^32 - 1")
    _lock_workspace(started=torch.cuda.is_initialized())
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # What torch.use_deterministic_algorithms does, without importing torch's compiler: seconds.
    os.environ["TORCHINDUCTOR_DETERMINISTIC"] = "1"
    compiler: Any = sys.modules.get("torch._inductor.config")
    if compiler is not None:
        compiler.deterministic = True
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = fill_new_memory
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    _assert_locked(seed, fill_new_memory)


def _lock_workspace(*, started: bool) -> None:
    for name in _UNLOCKING:
        if os.environ.get(name, "0") != "0":
            message = f"{name}={os.environ[name]} enables TF32"
            raise EnvironmentProblem(message, f"unset {name}")
    current = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    if current not in {None, WORKSPACE}:
        raise EnvironmentProblem(
            f"CUBLAS_WORKSPACE_CONFIG is {current}, but runs need {WORKSPACE}",
            "unset CUBLAS_WORKSPACE_CONFIG",
        )
    if started and current is None:
        raise EnvironmentProblem(
            "CUDA was initialized before CUBLAS_WORKSPACE_CONFIG was set, so cuBLAS may ignore it",
            "use no CUDA tensor before the target's inputs are built",
        )
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = WORKSPACE


def _assert_locked(seed: int, fill_new_memory: bool) -> None:
    import torch

    wanted: dict[str, object] = {
        "tf32_matmul": False,
        "tf32_cudnn": False,
        "float32_matmul_precision": "highest",
        "deterministic_algorithms": True,
        "cudnn_deterministic": True,
        "cudnn_benchmark": False,
        "cublas_workspace": WORKSPACE,
        "fill_new_memory": fill_new_memory,
    }
    state, numpy = flags(), sys.modules.get("numpy")
    loose = [name for name, value in wanted.items() if state[name] != value]
    seeds = {
        "random": random.getstate() == random.Random(seed).getstate(),
        "torch": torch.initial_seed() == seed,
        "numpy": numpy is None or int(numpy.random.get_state()[1][0]) == seed,
    }
    loose += [f"seed of {name}" for name, locked in seeds.items() if not locked]
    if loose:
        raise EnvironmentProblem(
            f"the environment could not be locked: {', '.join(loose)} did not take effect",
            "look for code that resets it when the target is imported",
        )


def flags() -> dict[str, bool | str | None]:
    """How torch computes now: TF32, determinism, reduced-precision sums, the cuBLAS workspace."""
    import torch

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return {
        "tf32_matmul": matmul.allow_tf32,
        "tf32_cudnn": cudnn.allow_tf32,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "float16_reduced_sums": _plain(matmul.allow_fp16_reduced_precision_reduction),
        "bfloat16_reduced_sums": _plain(matmul.allow_bf16_reduced_precision_reduction),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": cudnn.deterministic,
        "cudnn_benchmark": cudnn.benchmark,
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "fill_new_memory": torch.utils.deterministic.fill_uninitialized_memory,
    }


def fingerprint(folder: Path | None = None, *, dtype: str = "") -> Fingerprint:
    """The properties of this machine and process that may change a measurement.

    `folder` holds the target, for its git commit; `dtype` is the target's. None is
    unknown. Clocks are in Hz, power in W. Clocks are the set limits, not this moment's, so that two
    runs in the same surroundings have the same fingerprint. It holds no host name, user or path.
    """
    return Fingerprint(
        gpu=current_gpu(),
        versions=_versions(),
        compiler=_compilers(),
        dtype=dtype or None,
        flags=flags(),
        variables=variables(),
        commit=commit(folder) if folder is not None else None,
    )


def fingerprint_without_torch(
    uuid: str | None, tools: Mapping[str, str | None], environment: Mapping[str, str]
) -> Fingerprint:
    """As `fingerprint`, of a program that profkit knows nothing about.

    `uuid` is its GPU's, `tools` are versions by name, `environment` the variables that it gets.
    """
    return Fingerprint(
        gpu=structs.replace(_by_nvml(uuid), uuid=uuid) if uuid else None,
        versions=dict(tools),
        compiler=None,
        dtype=None,
        flags=None,
        variables=variables(environment),
        commit=None,
    )


def digest(facts: Model | Mapping[str, object]) -> str:
    """SHA-256 in hexadecimal: over the JSON with sorted keys and no spaces."""
    text = json.dumps(plain(facts), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment variables that change which kernels run or how, those that are set.

    No others are recorded, and of one that holds a path only that it does.
    """
    names = Path(__file__).with_name("variables.txt").read_text(encoding="utf-8").split()
    return {
        name: "(a path)" if "/" in value or "\\" in value else value
        for name in names
        if (value := environment.get(name)) is not None
    }


def commit(folder: Path) -> dict[str, str | bool] | None:
    """The git commit of a folder; None outside a repository or without git.

    `dirty` says that a tracked file of the repository was changed, or that the folder holds files
    that git does not know: the commit alone does not give the target back.
    """
    git = ("git", "-C", str(folder), "--no-optional-locks")
    revision = _output(*git, "rev-parse", "HEAD")
    if not revision:
        return None
    status = (*git, "status", "--porcelain")
    changed = _output(*status, "--untracked-files=no")
    unknown = _output(*status, "--untracked-files=normal", "--", ".")
    return {"commit": revision, "dirty": bool(changed or unknown)}


def _output(*command: str) -> str | None:
    """What a command prints, None where it can't be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _versions() -> dict[str, str | None]:
    import torch

    cudnn = torch.backends.cudnn.version()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": None if cudnn is None else str(cudnn),
        "triton": installed_version("triton"),
        "cuda_core": installed_version("cuda-core"),
    }


def _compilers() -> dict[str, str | None]:
    """The build of the nvcc on the path, as `cuda_13.0.r13.0/compiler.36424714_0`, and NVRTC's."""
    from profkit.capture.cuda_source import compiler_version

    text = _output("nvcc", "--version")
    nvcc = text.splitlines()[-1].removeprefix("Build ") if text else None
    try:
        return {"nvcc": nvcc, "nvrtc": compiler_version()}
    except EnvironmentProblem:
        return {"nvcc": nvcc, "nvrtc": None}


def current_gpu() -> Device | None:
    """The current CUDA device; None where there is none. Starts CUDA."""
    import torch

    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    uuid = getattr(properties, "uuid", None)
    name = None if uuid is None else f"GPU-{uuid}"
    return structs.replace(
        _by_nvml(name),
        name=properties.name,
        uuid=name,
        compute_capability=f"{properties.major}.{properties.minor}",
        multiprocessors=properties.multi_processor_count,
        memory_bytes=properties.total_memory,
    )


def _by_nvml(uuid: str | None) -> Device:
    """The driver and the settings of a GPU as NVML reports them."""
    with suppress(NoDriver), connection() as nvml:
        driver = answer(nvml, "nvmlSystemGetDriverVersion")
        handle = answer(nvml, "nvmlDeviceGetHandleByUUID", uuid) if uuid else None
        text = driver.decode() if isinstance(driver, bytes) else driver
        return structs.replace(settings(nvml, handle), driver=text)
    return Device(**dict.fromkeys(("driver", *SETTINGS)))


def _plain(value: Any) -> bool | str:
    """A flag of torch as a fingerprint holds it: some versions give a pair."""
    return value if isinstance(value, bool) else ", ".join(str(bool(part)) for part in value)
