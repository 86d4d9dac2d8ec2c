"""A defect/fix pair: the folder `kernels/pairs/NAME` as data, and as a target that profkit runs.

`pair.yaml` says what is wrong, its fix, the launches of both sides and their data; its form is
`pairs/pair.schema.json`. A pair without launches has `sides.py`, functions `before` and `after` of
the inputs that return the output (torch, Triton). `reference.py` has the result by the definition.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

from profkit import Target, Unsupported, Variant, Work
from profkit.capture.cuda_source import compile_kernel
from profkit.core.errors import BadInput
from profkit.core.yaml_files import read_yaml
from profkit.score.without_counters import TensorForm, WorkForm, declared_work

PAIRS = Path(__file__).parent / "pairs"
BEFORE, AFTER = "before", "after"
SIDES = (BEFORE, AFTER)

_WIDE: Mapping[str, Callable[[Any], Any]] = {"int64": ctypes.c_int64, "float64": ctypes.c_double}
_OUT = "out"


@dataclass(frozen=True)
class Tensor:
    """A tensor of a pair: `fill` says what an input holds, `zeroed` that an output starts at 0."""

    shape: tuple[int, ...]
    dtype: str
    fill: str | Mapping[str, Any] = ""
    zeroed: bool = False


@dataclass(frozen=True)
class Launch:
    """One launch of a side: the kernel, its grid in blocks, its block in threads.

    `arguments` are names of tensors, numbers, or `{"int64": n}` and `{"float64": x}`.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    defines: Mapping[str, str | int] = field(default_factory=dict)
    shared_bytes: int = 0
    file: str = ""


@dataclass(frozen=True)
class Pair:
    """One defect and its fix; a control has neither category nor `after`.

    `defect` is text that stands in one line of before.cu, the line to blame. `second_limit` is the
    category right behind the first. `library` names what torch does in place of launches. Pairs of
    one workload are a `family`; `area` is its field of application. `work` is None where no FLOP
    are declared. `kind`: one defect dominates, several limits of 5 to 40% compete, or `no_gain`, a
    fix of the category that gives nothing.
    """

    name: str
    folder: Path
    category: str | None
    what: str
    dtype: str
    inputs: Mapping[str, Tensor]
    output: Tensor
    architectures: Mapping[str, tuple[str, ...]]
    launches: Mapping[str, tuple[Launch, ...]]
    fix: str = ""
    defect: str = ""
    second_limit: str | None = None
    scratch: Mapping[str, Tensor] = field(default_factory=dict)
    work: Work | None = None
    library: str | None = None
    family: str = ""
    area: str = ""
    kind: str = "defect"

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that there are, `before` first."""
        return SIDES if self.category else (BEFORE,)

    @property
    def line(self) -> int | None:
        """The number of the defect's line in before.cu; None for a control.

        Raises BadInput unless exactly one line has the text.
        """
        if not self.defect:
            return None
        source = self.folder / self.launches[BEFORE][0].file
        lines = source.read_text(encoding="utf-8").splitlines()
        found = [at for at, line in enumerate(lines, start=1) if self.defect in line]
        if len(found) != 1:
            raise BadInput(f"{source}: {len(found)} lines have {self.defect!r}, not one")
        return found[0]

    def target(self) -> Target:
        """The pair as a target; its variants are the sides."""
        return Target(
            name=self.name,
            shapes={name: list(tensor.shape) for name, tensor in self.inputs.items()},
            dtype=self.dtype,
            inputs=partial(_inputs, self.inputs),
            reference=module_of(self.folder / "reference.py")["reference"],
            variants=[Variant(side, partial(self._run, side)) for side in self.sides],
            work=self.work,
        )

    def _run(self, side: str, inputs: Mapping[str, Any]) -> Any:
        import torch

        first = next(iter(inputs.values()))
        if self.library == "matmul":
            return torch.matmul(inputs["a"], inputs["b"])
        if not self.launches[side]:
            return module_of(self.folder / "sides.py")[side](inputs)
        if not first.is_cuda:
            raise Unsupported("the kernels need a CUDA device")
        made = {name: _empty(tensor, first.device) for name, tensor in self.scratch.items()}
        made[_OUT] = _empty(self.output, first.device)
        tensors = {**inputs, **made}
        for launch in self.launches[side]:
            kernel = compile_kernel(
                self.folder / launch.file, launch.kernel, defines=launch.defines
            )
            passed = [_passed(argument, tensors) for argument in launch.arguments]
            kernel.launch(launch.grid, launch.block, *passed, shared_bytes=launch.shared_bytes)
        return made[_OUT]


def names() -> tuple[str, ...]:
    """The names of the pairs and controls, sorted."""
    return tuple(sorted(file.parent.name for file in PAIRS.glob("*/pair.yaml")))


def read(name: str) -> Pair:
    """The pair of this name; raises BadInput for one that there is not or that is ill-formed."""
    file = PAIRS / name / "pair.yaml"
    if not file.is_file():
        raise BadInput(f"{file}: no such file", f"there are {', '.join(names())}")
    told = read_yaml(file)
    try:
        return _pair(file.parent, dict(told))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file}: {' '.join(str(error).split())}") from error


def _pair(folder: Path, told: dict[str, Any]) -> Pair:
    architectures = told.pop("architectures", [])
    launches = {side: told.pop(side, None) or [] for side in SIDES}
    named = (
        architectures if isinstance(architectures, dict) else dict.fromkeys(SIDES, architectures)
    )
    if told["name"] != folder.name:
        raise ValueError(f"name {told['name']!r} is not the folder's")
    inputs = {name: _tensor(one) for name, one in told.pop("inputs").items()}
    output = _tensor(told.pop("output"))
    return Pair(
        folder=folder,
        family=told.pop("family", folder.name),
        inputs=inputs,
        output=output,
        scratch={name: _tensor(one) for name, one in told.pop("scratch", {}).items()},
        work=_work(WorkForm(**told.pop("work", {})), [*inputs.values(), output]),
        architectures={side: tuple(listed) for side, listed in named.items()},
        launches={
            side: tuple(_launch(one, f"{side}.cu") for one in listed)
            for side, listed in launches.items()
        },
        **told,
    )


def _work(form: WorkForm, tensors: Sequence[Tensor]) -> Work | None:
    declared = declared_work(form, [TensorForm(each.shape, each.dtype) for each in tensors])
    known = not math.isnan(declared.flop)
    return Work(declared.flop, declared.bytes, form.what) if known else None


def _tensor(told: Mapping[str, Any]) -> Tensor:
    return Tensor(**{**told, "shape": tuple(told["shape"])})


def _launch(told: Mapping[str, Any], file: str) -> Launch:
    as_tuples = {key: tuple(told[key]) for key in ("grid", "block", "arguments")}
    return Launch(**{"file": file, **told, **as_tuples})


def _passed(argument: Any, tensors: Mapping[str, Any]) -> Any:
    if isinstance(argument, str):
        return tensors[argument]
    if isinstance(argument, Mapping):
        ((kind, value),) = argument.items()
        return _WIDE[kind](value)
    return argument


def _empty(tensor: Tensor, device: Any) -> Any:
    import torch

    made = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype), device=device)
    if tensor.zeroed:
        _set_to_zero(made)
    return made


def _set_to_zero(tensor: Any) -> None:
    """By a memset: torch's own way is a kernel, which a profiler would count as the side's."""
    import torch
    from cuda.bindings import driver

    stream = torch.cuda.current_stream().cuda_stream
    (status,) = driver.cuMemsetD8Async(tensor.data_ptr(), 0, tensor.nbytes, stream)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"cuMemsetD8Async: {status.name}")


def _inputs(tensors: Mapping[str, Tensor], device: str, seed: int) -> dict[str, Any]:
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    return {name: _filled(tensor, generator) for name, tensor in tensors.items()}


def _filled(tensor: Tensor, generator: Any) -> Any:
    import torch

    dtype = getattr(torch, tensor.dtype)
    if isinstance(tensor.fill, str):
        kind, parameters = tensor.fill, None
    else:
        ((kind, parameters),) = tensor.fill.items()
    if kind not in _FILLS:
        raise BadInput(f"{kind!r} is no fill of a tensor", f"use {', '.join(_FILLS)}")
    return _FILLS[kind](tensor.shape, generator, parameters).reshape(tensor.shape).to(dtype)


def _normal(shape: Sequence[int], generator: Any, _: Any) -> Any:
    import torch

    return torch.randn(shape, generator=generator, device=generator.device)


def _scaled(shape: Sequence[int], generator: Any, scale: float) -> Any:
    return _normal(shape, generator, None) * scale


def _uniform(shape: Sequence[int], generator: Any, _: Any) -> Any:
    import torch

    return torch.rand(shape, generator=generator, device=generator.device)


def _zeros(shape: Sequence[int], generator: Any, _: Any) -> Any:
    import torch

    return torch.zeros(shape, device=generator.device)


def _ramp(shape: Sequence[int], generator: Any, _: Any) -> Any:
    import torch

    return torch.arange(math.prod(shape), device=generator.device)


def _permutation(shape: Sequence[int], generator: Any, _: Any) -> Any:
    import torch

    return torch.randperm(math.prod(shape), generator=generator, device=generator.device)


def _cycle(shape: Sequence[int], generator: Any, _: Any) -> Any:
    """Each element holds the index of the next; following them visits all, in random order."""
    order = _permutation(shape, generator, None)
    following = order.clone()
    following[order] = order.roll(-1)
    return following


def _integers(shape: Sequence[int], generator: Any, bounds: Sequence[int]) -> Any:
    import torch

    return torch.randint(*bounds, tuple(shape), generator=generator, device=generator.device)


_FILLS: Mapping[str, Callable[[Sequence[int], Any, Any], Any]] = {
    "normal": _normal,
    "scaled": _scaled,
    "uniform": _uniform,
    "zeros": _zeros,
    "ramp": _ramp,
    "permutation": _permutation,
    "cycle": _cycle,
    "integers": _integers,
}


@cache
def module_of(file: Path) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
    """The functions of a Python file beside a pair.yaml, by name."""
    name = f"_{file.stem}_{file.parent.name}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Triton looks up the source of a kernel's module
    spec.loader.exec_module(module)
    return vars(module)


def described(pair: Pair) -> dict[str, Any]:
    """What pair.yaml says of the defect, JSON-able: what a recording keeps of it."""
    kept: Sequence[str] = ("name", "category", "what", "fix", "defect", "second_limit")
    return {item.name: getattr(pair, item.name) for item in fields(pair) if item.name in kept}
