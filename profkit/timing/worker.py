"""A process that holds a target and times its variants on request.

    python -m profkit.timing.worker FD

One JSON request a line on stdin, one JSON answer a line on the file descriptor FD: what the target
prints goes elsewhere. Requests are {"do": "where" | "declare" | "open" | "prepare" | "block",
...} with the keyword arguments of `Worker`'s methods, of which "open"
lets go of the target before; an answer is {"told": ...} or {"error", "message", "remedy"}, where
"error" is an exit code of profkit.core.errors.
Before it there may be lines {"doing": ...} that name the variant that is checked.
The end of stdin ends the process.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TextIO

from msgspec import structs

from profkit.capture import target as targets
from profkit.capture.correctness import Declared, Verdict
from profkit.capture.environment import WORKSPACE, current_gpu, digest, fingerprint, lock
from profkit.capture.gpu import NoDriver, Watch
from profkit.capture.target import Inputs, Target, Unsupported, Variant, load_target
from profkit.core.errors import EnvironmentProblem, ProfkitError, TargetFailed
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.text_files import error_words
from profkit.core.typed_file import plain
from profkit.timing.latency_format import Recorded
from profkit.timing.loaded import Declaration, Loaded, Located, VariantFacts
from profkit.timing.stopwatch import Cache, Ready, Settings, Timer
from profkit.timing.stopwatches import Stopwatches, TimedCall

_PROFKIT = Path(__file__).resolve().parent.parent


class Worker:
    """The target, its inputs and a stopwatch for each variant that has been prepared."""

    def __init__(self, started: float) -> None:
        self._started: float | None = started
        self.doing: Callable[[str], None] = lambda _: None
        self._target: Target
        self._inputs: Inputs = {}
        self._stopwatches: Stopwatches

    def open(
        self,
        path: str,
        arguments: Sequence[str],
        variants: Sequence[str],
        seed: int,
        device: str | None,
        check: bool,
        foreign: str | None,
    ) -> Loaded:
        """Import the target, build the inputs, check the variants; what it is and where it runs.

        Raises EnvironmentProblem where modules come from below `foreign`, which is another tree.
        """
        started, self._started = self._started or time.perf_counter(), None
        self.__dict__.pop("_target", None)
        self.__dict__.pop("_stopwatches", None)
        self._inputs = {}
        target = self.load(path, arguments, variants)
        chosen = [variant.name for variant in target.chosen(variants)]
        self._device = device_of(device)
        imported = time.perf_counter()
        import torch

        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        self._target = target
        lock(seed)
        self._inputs = self._target.inputs(self._device, seed)
        built = time.perf_counter()
        verdicts: list[Verdict] = []
        if check:
            lock(seed, fill_new_memory=True)
            verdicts = target.check(
                self._device, seed, chosen, inputs=self._inputs, tell=self.doing
            )
        lock(seed)
        done = time.perf_counter()
        if foreign is not None:
            _refuse_modules_from(Path(foreign))
        surroundings = fingerprint(Path(path).resolve().parent, dtype=self._target.dtype)
        spans = {"imports": imported - started, "check": done - built, "inputs": built - imported}
        on_gpu = self._device == "cuda"
        self._stopwatches = Stopwatches(self._device, watch(surroundings) if on_gpu else None)
        return Loaded(
            target=structs.replace(_sound(self._target.described()), variants=tuple(chosen)),
            device=self._device,
            checks=tuple(verdicts),
            variants={each.name: _about(each, self._inputs) for each in target.chosen(chosen)},
            fingerprint=surroundings,
            fingerprint_sha256=digest(surroundings),
            spans=spans,
        )

    def load(self, path: str, arguments: Sequence[str], _variants: Sequence[str]) -> Target:
        """The target that has these variants."""
        return load_target(Path(path), arguments)

    def where(self, device: str | None) -> Located:
        """The device that a target would run on, as "open" returns it."""
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)  # this may start CUDA
        device = device_of(device)
        gpu = current_gpu() if device == "cuda" else None
        return Located(device=device, fingerprint=Fingerprint(gpu=gpu))

    def declare(self, path: str, arguments: Sequence[str]) -> Declaration:
        """Import the target; its declaration, and the version and setting of each variant."""
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)  # a library may start CUDA
        target = load_target(Path(path), arguments)
        about = {variant.name: _about(variant, None) for variant in target.variants}
        return Declaration(target=_sound(target.described()), variants=about)

    def prepare(self, variant: str, timer: str, cache: str, warmup: float, group: int) -> Ready:
        """Warm a variant up."""
        self._target.enter()
        (chosen,) = self._target.chosen([variant])
        targets.attempt(chosen, self._inputs)
        settings = Settings(Timer(timer), Cache(cache), warmup, group)
        timed = TimedCall(partial(chosen.run, self._inputs), chosen.around)
        return self._stopwatches.prepare(variant, timed, settings)

    def block(self, variant: str, samples: int, host: float) -> Recorded:
        """Take a block of samples."""
        self._target.enter()
        return self._stopwatches.block(variant, samples, host)


def device_of(asked: str | None) -> str:
    """Where to run; raises EnvironmentProblem where there is no such device, or no torch."""
    try:
        import torch
    except ImportError:
        raise targets.without_torch() from None
    if asked == "cpu":
        return "cpu"
    if not torch.cuda.is_available():
        raise EnvironmentProblem(
            "torch sees no CUDA device", "see `profkit doctor`; profkit time has --device cpu"
        )
    return "cuda"


def _about(variant: Variant, inputs: Inputs | None) -> VariantFacts:
    version, unavailable, chosen = None, "", None
    try:
        version = variant.version() if variant.version else None
    except Unsupported as why:
        unavailable = str(why)
    except Exception as error:
        unavailable = f"its version can't be determined ({error_words(error)})"
    with suppress(Exception):  # None where the dispatch is unknown
        if variant.chooses and inputs is not None:
            chosen = variant.chooses(inputs)
    return VariantFacts(
        setting=variant.setting, version=version, unavailable=unavailable, chosen=chosen
    )


def _sound(described: Declared) -> Declared:
    work = described.work
    try:
        json.dumps([described.shapes, work and [work.flop, work.bytes]], allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TargetFailed(
            f"the target's declaration is not valid JSON ({error})",
            "use finite numbers and strings",
        ) from None
    return described


def _refuse_modules_from(tree: Path) -> None:
    """Raise where this process runs code of another tree: profkit itself apart."""

    def is_foreign(file: str | None) -> bool:
        if not file or "site-packages" in file:
            return False
        path = Path(file).resolve()
        return path.is_relative_to(tree) and not path.is_relative_to(_PROFKIT)

    modules = sys.modules.copy().items()
    names = [name for name, module in modules if is_foreign(getattr(module, "__file__", None))]
    if names:
        raise EnvironmentProblem(
            f"the commit's side imported {', '.join(sorted(names)[:3])} from the working tree",
            "import it from beside the target, not from an installed or a PYTHONPATH copy",
        )


def watch(surroundings: Fingerprint) -> Watch | None:
    """The NVML watch of a fingerprint's GPU; None without NVML."""
    try:
        return Watch((surroundings.gpu or Device()).uuid or "")
    except NoDriver:
        return None


def serve(worker: object, requests: TextIO, answers: TextIO) -> None:
    """Answer requests, which name methods of `worker`, until there are no more."""
    for line in requests:
        request = json.loads(line)
        try:
            answer = plain({"told": getattr(worker, request.pop("do"))(**request)})
        except ProfkitError as error:
            answer = {"error": error.exit_code, "message": error.message, "remedy": error.remedy}
        except Exception as error:
            answer = {"error": TargetFailed.exit_code, "message": error_words(error), "remedy": ""}
        print(json.dumps(answer), file=answers, flush=True)


def main(argv: Sequence[str], make: Callable[[float], object] = Worker) -> None:
    """Serve until the end; what a target reads from stdin is empty.

    `make` gets the time at which the process started, by time.perf_counter().
    """
    started = time.perf_counter()
    requests_from, answers_to = os.dup(0), int(argv[0])
    os.set_inheritable(answers_to, False)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    with (
        os.fdopen(requests_from, "r", encoding="utf-8") as requests,
        os.fdopen(answers_to, "w", encoding="utf-8") as answers,
    ):
        worker = make(started)
        if isinstance(worker, Worker):
            worker.doing = lambda variant: print(
                json.dumps({"doing": variant}), file=answers, flush=True
            )
        serve(worker, requests, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
