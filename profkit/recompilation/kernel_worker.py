"""A process that times a variant of a target as it is and with switches of its kernels.

    python -m profkit.recompilation.kernel_worker FD

Variants are named VARIANT+SWITCH+SWITCH; see `profkit.timing.worker`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from profkit.capture.cuda_source import Build, Source, built
from profkit.capture.environment import lock
from profkit.capture.target import Target, Variant, attempt, load_target
from profkit.core.errors import TargetFailed
from profkit.recompilation.kernel_switches import (
    Offer,
    build_of,
    offers_for_source,
    offers_for_triton,
)
from profkit.recompilation.triton_launch import launched
from profkit.timing.loaded import Loaded
from profkit.timing.worker import Worker, device_of, main


class KernelWorker(Worker):
    """Times a variant with switches."""

    def load(self, path: str, arguments: Sequence[str], variants: Sequence[str]) -> Target:
        target = load_target(Path(path), arguments)
        other = replace(target, variants=[_switched(target, name) for name in variants])
        object.__setattr__(other, "scope", target.scope)  # with its imports
        return other

    def open(self, *arguments: Any, **named: Any) -> Loaded:
        """As of `Worker`; a variant that takes the GPU from this process ends it."""
        tell = self.doing

        def doing(variant: str) -> None:
            _end_without_device()
            tell(variant)

        self.doing = doing
        try:
            return super().open(*arguments, **named)
        finally:
            _end_without_device()

    def offers(
        self, path: str, arguments: Sequence[str], variant: str, seed: int, device: str | None
    ) -> tuple[Offer, ...]:
        """The switches that apply to what a variant compiles and launches."""
        target = load_target(Path(path), arguments)
        (subject,) = target.chosen([variant])
        target.enter()
        lock(seed)
        inputs = target.inputs(device_of(device), seed)
        attempt(subject, inputs)  # Triton is imported by now
        with built(Build()) as sources, launched({}) as constants:
            attempt(subject, inputs)
        offered = [*offers_for_source(source.text for source in sources)]
        with ThreadPoolExecutor() as pool:  # the compiler runs without Python's lock
            differs = pool.map(lambda each: _differs(each, sources), offered)
            chosen = [each for each, is_other in zip(offered, differs, strict=True) if is_other]
        return (*chosen, *offers_for_triton(constants))


def _differs(offer: Offer, sources: Collection[Source]) -> bool:
    """Whether a switch makes other machine code, or another state of the device."""
    build, _ = build_of([offer.name])
    with suppress(TargetFailed):
        return build.carveout >= 0 or any(
            source.compiled(build).cubin != source.compiled().cubin for source in sources
        )
    return True  # its error is said where it is checked


def _end_without_device() -> None:
    """End this process where an earlier kernel left it without its device."""
    import torch

    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        os._exit(TargetFailed.exit_code)


def _switched(target: Target, name: str) -> Variant:
    """A variant of a target with the switches in a name."""
    names = [each.name for each in target.variants if f"{name}+".startswith(f"{each.name}+")]
    (of,) = target.chosen([max(names, key=len, default=name)])  # raises where there is none
    build, values = build_of(name.removeprefix(of.name).split("+")[1:])

    @contextmanager
    def around() -> Iterator[None]:
        with built(build), launched(values), of.around():
            yield

    return replace(of, name=name, around=around)


if __name__ == "__main__":
    main(sys.argv[1:], KernelWorker)
