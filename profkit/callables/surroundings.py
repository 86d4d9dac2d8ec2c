"""Where a callable runs: its device, its frameworks, how to wait for it, and what can time it."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from profkit.callables.arrays import framework, gpu_number, is_on_gpu
from profkit.capture import driver
from profkit.capture.environment import commit, fingerprint, fingerprint_without_torch, flags
from profkit.capture.tools import installed_version
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import known, part
from profkit.timing.stopwatch import Timer
from profkit.timing.stopwatches import Wait

_PACKAGES = ("torch", "triton", "jax", "jaxlib", "cupy", "numpy", "cuda-core")
_HANDLES = ("cuda_stream", "ptr", "handle")  # of torch's, CuPy's and cuda.core's streams


class Surroundings(Struct, frozen=True):
    """`device` is "cuda" or "cpu"; `frameworks` those of the arrays that go in and come out, and
    `number` the GPU that they lie on by CUDA's count, None without one. `unsure`: they lie in the
    host's memory, but the process uses a GPU, and so may the call."""

    device: str
    frameworks: frozenset[str]
    number: int | None = None
    unsure: bool = False

    @property
    def wait(self) -> Wait | None:
        """How to wait until a call has finished; None where it has when it returns."""
        if "jax" in self.frameworks:
            jax = sys.modules["jax"]
            if self.frameworks <= {"jax", "numpy"}:
                return lambda result: jax.block_until_ready(result)
            return lambda result: wait_for_gpu(jax.block_until_ready(result))
        return wait_for_gpu if self.device == "cuda" else None

    def timer(self, wanted: str | None) -> Timer:
        """The timer: as asked for, else one that sees this work.

        CUDA events need torch, and JAX puts work on streams of its own, where they see nothing.
        Raises UsageError for a timer that is none or can't see the work, EnvironmentProblem for one
        that needs torch.
        """
        known = [timer.value for timer in Timer if timer is not Timer.wall]
        if wanted is not None and wanted not in known:
            raise UsageError(f"timer {wanted!r} is not one of {', '.join(known)}", "leave it out")
        if self.device == "cpu":
            return Timer.wall
        if wanted is None:
            visible = "jax" not in self.frameworks and not self.unsure and _torch_has_cuda()
            return Timer.events if visible else Timer.synchronized
        if wanted != Timer.synchronized and "jax" in self.frameworks:
            raise UsageError(
                f"timer {wanted!r} can't see JAX's streams", "leave it out: the host clock is used"
            )
        if wanted != Timer.synchronized and not _torch_has_cuda():
            raise EnvironmentProblem(
                f"timer {wanted!r} needs a torch with CUDA",
                "pip install torch, or use timer='synchronized'",
            )
        return Timer(wanted)

    def around(self, stream: Any, timer: Timer) -> Callable[[], AbstractContextManager[object]]:
        """What makes CUDA events see work on a stream: torch's current stream is that one, and its
        current device the one of the arrays.

        `stream` None: torch's current one, or CuPy's where its arrays are used.
        """
        if self.device == "cpu" or (timer is Timer.synchronized and "torch" not in self.frameworks):
            return nullcontext
        if stream is None and "cupy" in self.frameworks:
            stream = sys.modules["cupy"].cuda.get_current_stream()
        pointer = 0 if stream is None else pointer_of(stream)
        if not pointer and self.number is None:
            return nullcontext

        @contextmanager
        def current() -> Iterator[None]:
            import torch

            with ExitStack() as stack:
                if self.number is not None:
                    stack.enter_context(torch.cuda.device(self.number))
                if pointer:
                    stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(pointer)))
                yield

        return current

    def fingerprint(self, folder: Path | None) -> Fingerprint:
        """The environment of the measurement, with the git commit of a folder; torch is not
        imported for it."""
        versions = {name: installed_version(name) for name in _PACKAGES}
        gpu = driver.device(self.number) if self.device == "cuda" else None
        environment = fingerprint_without_torch(known(gpu.uuid) if gpu else None, {}, os.environ)
        if gpu and environment.gpu:
            facts = part(gpu, "name", "compute_capability", "multiprocessors", "memory_bytes")
            gpu = structs.replace(environment.gpu, **facts)
        has_torch = "torch" in sys.modules
        if has_torch and self.device == "cuda":  # on the CPU torch would start CUDA for it
            environment = fingerprint()
            gpu = environment.gpu or gpu
            versions |= environment.versions or {}
        return structs.replace(
            environment,
            gpu=gpu,
            versions={name: version for name, version in versions.items() if version},
            flags=flags() if has_torch else None,
            commit=commit(folder) if folder else None,
        )


def surroundings(arrays: Sequence[Any], device: str | None) -> Surroundings:
    """Those of a call whose arguments and result hold these arrays.

    Where this process uses a GPU, a call does too for all that its arrays tell. Raises UsageError
    for arrays on several GPUs.
    """
    frameworks = frozenset(framework(array) for array in arrays)
    on_gpu = [array for array in arrays if is_on_gpu(array)]
    unsure = device is None and not on_gpu and driver.in_use()
    if device is None:
        device = "cuda" if on_gpu or unsure else "cpu"
    numbers = {gpu_number(array) for array in on_gpu}
    if len(numbers) > 1:
        raise UsageError(f"arrays on {len(numbers)} GPUs", "put them on one")
    return Surroundings(
        device, frameworks, numbers.pop() if numbers else None, unsure and bool(arrays)
    )


def _torch_has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return torch.version.cuda is not None


def wait_for_gpu(_: object) -> None:
    """Wait for all that the GPU was given."""
    driver.synchronize()


def wait_for(result: Any, arrays: Sequence[Any]) -> None:
    """Wait for a call, whatever it uses: `arrays` are those of its arguments and its result."""
    wait = surroundings(arrays, None).wait
    if wait is not None:
        wait(result)
    driver.synchronize()


def pointer_of(stream: Any) -> int:
    """The CUstream of a stream of torch, CuPy or cuda.core, or of a number.

    Raises UsageError for what is no stream.
    """
    for name in _HANDLES:
        stream = getattr(stream, name, stream)
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise UsageError(
            f"stream is {type(stream).__name__}", "give a stream of torch, CuPy or cuda.core"
        ) from None
