"""A kernel with the interface of a compiled one, for host code that launches torch's tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels.attention import tensor_map
from tests.emulator import TensorMap, emulate

_BITS = {"torch.bfloat16": "uint16"}


@dataclass(frozen=True)
class EmulatedKernel:
    """Stands in for cuda_source.CudaKernel and runs on tensors of the CPU.

    A kernel that writes one of the tensors in `read_only` is at fault.
    """

    path: Path | str
    name: str
    defines: Mapping[str, str | int] = field(default_factory=dict)
    read_only: Collection[Any] = ()
    orders: Sequence[str | int] = ("forward", "reverse")
    blocks: Callable[[int], Sequence[int]] | None = None  # of a grid of so many: which to run

    def launch(
        self, grid: Sequence[int], block: Sequence[int], *arguments: Any, shared_bytes: int = 0
    ) -> None:
        emulate(
            self.path,
            self.name,
            grid,
            block,
            [self._passed(argument) for argument in arguments],
            defines=self.defines,
            shared_bytes=shared_bytes,
            orders=self.orders,
            blocks=self.blocks(math.prod(grid)) if self.blocks else None,
        )

    def _passed(self, argument: Any) -> Any:
        if isinstance(argument, tensor_map.TensorMap):
            return TensorMap(self._array(argument.tensor), argument.box)
        return self._array(argument) if hasattr(argument, "data_ptr") else argument

    def _array(self, tensor: Any) -> Any:
        import torch

        bits = _BITS.get(str(tensor.dtype))
        array = (tensor.view(getattr(torch, bits)) if bits else tensor).numpy()
        if tensor.data_ptr() in {other.data_ptr() for other in self.read_only}:
            array.flags.writeable = False
        return array
