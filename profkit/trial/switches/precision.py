"""Fewer bits: TensorFloat-32, bfloat16, and libraries of matrix products."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from functools import partial
from typing import Any


def tf32(program: Any) -> None:
    """Matrix products and convolutions of FP32 on tensor cores."""
    program.torch.set_float32_matmul_precision("high")
    program.torch.backends.cudnn.allow_tf32 = True
    program.applied("tf32")


def bf16(program: Any) -> None:
    """Outermost modules in bfloat16: autocast in programs that train, parameters and inputs in
    others."""
    torch = program.torch
    trains = bool({"backward", "optimizer"} & set(program.record.plan["features"]))

    def lower(module: Any, call: Any) -> Any:
        if not any(parameter.dtype == torch.float32 for parameter in module.parameters()):
            return call
        program.applied("bf16")
        device = next(module.parameters()).device.type
        is_training = trains or (module.training and torch.is_grad_enabled())
        if not is_training:
            module.to(torch.bfloat16)

        def lowered(*args: Any, **kwargs: Any) -> Any:
            if not is_training:
                args, kwargs = _cast((args, kwargs), torch, torch.float32, torch.bfloat16)
            with torch.autocast(device, torch.bfloat16) if is_training else nullcontext():
                output = call(*args, **kwargs)
            return _cast(output, torch, torch.bfloat16, torch.float32)

        return lowered

    program.wrappers.append(lower)


def _cast(value: Any, torch: Any, before: Any, after: Any) -> Any:
    """Tensors of one type in another, in what tuples, lists and dictionaries contain."""
    from torch.utils._pytree import tree_map

    def cast(part: Any) -> Any:
        return part.to(after) if torch.is_tensor(part) and part.dtype == before else part

    return tree_map(cast, value)


def cublaslt(program: Any) -> None:
    """Matrix products by cuBLASLt."""
    program.torch.backends.cuda.preferred_blas_library("cublaslt")
    program.applied("cublaslt")


def cudnn_benchmark(program: Any) -> None:
    """Convolution algorithms by measurement."""
    program.torch.backends.cudnn.benchmark = True
    program.applied("cudnn-benchmark")


def _attention(program: Any, chosen: str) -> None:
    """Attention by one library, where it takes the inputs."""
    backends = program.torch.backends.cuda
    for name in ("flash", "mem_efficient", "cudnn"):
        enable = getattr(backends, f"enable_{name}_sdp", None)
        if enable is not None:
            enable(name == chosen or (name == "mem_efficient" and chosen == "flash"))

    def without_eager(module: Any, call: Any) -> Any:
        for part in module.modules():
            if getattr(getattr(part, "config", None), "_attn_implementation", "") == "eager":
                with suppress(ValueError):  # a part that has no other, as a convolutional backbone
                    part.set_attn_implementation("sdpa")
                    break
        return call

    program.wrappers.append(without_eager)
    program.applied(f"sdpa-{chosen.replace('mem_', '')}")


sdpa_flash = partial(_attention, chosen="flash")
sdpa_efficient = partial(_attention, chosen="mem_efficient")
sdpa_cudnn = partial(_attention, chosen="cudnn")
