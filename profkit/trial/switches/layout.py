"""Memory layouts."""

from __future__ import annotations

from typing import Any


def channels_last(program: Any) -> None:
    """Parameters and images of convolutions with the channels innermost."""
    torch = program.torch
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    converted: set[int] = set()

    def convert(module: Any, args: Any, kwargs: Any) -> Any:
        if id(module) not in converted:
            converted.add(id(module))
            for dimension in {p.dim() for p in module.parameters()} & formats.keys():
                module.to(memory_format=formats[dimension])
                program.applied("channels-last")
        return tuple(map(arranged, args)), {key: arranged(kwargs[key]) for key in kwargs}

    def arranged(value: Any) -> Any:
        if torch.is_tensor(value) and value.dim() in formats and value.is_floating_point():
            return value.contiguous(memory_format=formats[value.dim()])
        return value

    program.changes.append(convert)
