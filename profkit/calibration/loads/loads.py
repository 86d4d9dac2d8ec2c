"""The loads themselves: what is launched for each roof, on data that is normally distributed.

Zeros would run faster: data that does not change draws less power, and leaves a higher clock.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from profkit.calibration.loads import counts
from profkit.calibration.loads.counts import Machine
from profkit.capture.cuda_source import compile_kernel
from profkit.capture.target import Unsupported

_FOLDER = Path(__file__).parent
_RESIDENT = 8  # blocks of 256 threads per SM: 2,048 threads, the most of any SM
_FMA_BLOCKS, _MMA_BLOCKS = 4, 2  # per SM
_FMA_STEPS, _MMA_STEPS = 12_000, 4_000
_SLOW_FP64 = 16  # times fewer steps: FP64 at 1/32 or 1/64 of FP32's rate, not 1/2
_L2_READ = 4 << 30  # bytes per call
_GROWTH = (1.25, 0.5)  # x -> a x + b and back: exact in binary, so that results stay in range
_SIZE, _FP64_SIZE = 8192, 4096  # chosen: tens of tiles per SM, so that the tail is short
_INT8_SIGMA = 32  # chosen: four sigma fill the range of INT8
_ROWS_CHECKED = 16  # chosen: a wrong layout shows in any row; all would take longer than timing
_COARSEST = 0.05  # relative, chosen: FP8 and BF16 outputs round to 3 and 8 bits
_OTHER_PATH = (9, 10)  # majors whose tensor cores have a faster path than mma.sync
_TENSOR_FP64 = ((8, 0), (9, 0), (10, 0))
_SINCE: Mapping[str, tuple[int, int]] = {
    "tensor_fp16": (7, 0),
    "tensor_int8": (7, 5),
    "tensor_bf16": (8, 0),
    "tensor_tf32": (8, 0),
    "tensor_fp8": (8, 9),
}


class Load(Struct, frozen=True):
    """Work that keeps a resource busy.

    `call` queues it on torch's current stream, `amount` is what it moves or computes, `method` says
    what it is, `right` whether its results are.
    """

    call: Callable[[], object]
    amount: float
    method: str
    right: Callable[[], bool]


def loads(name: str, machine: Machine, seed: int) -> Sequence[Load]:
    """Ways to reach a roof, of which the fastest is it; data on the current device.

    Raises Unsupported where this GPU, or torch on it, can't do the work.
    """
    if name not in _MADE:
        return [_product(name, machine, seed)]
    return _MADE[name](machine, seed)


def _copies(machine: Machine, seed: int) -> Sequence[Load]:
    import torch

    vectors = _in_dram(machine)
    source = _normal((vectors, 4), torch.float32, seed, machine.device)
    target = torch.zeros_like(source)
    kernel = compile_kernel(_FOLDER / "copy.cu", "copy")
    amount = counts.copy_bytes(vectors)
    size = f"{source.nbytes >> 20} MiB read and as many written"

    def right() -> bool:
        copied = bool(torch.equal(source, target))
        target.zero_()  # the next way is to show that it copies too
        return copied

    def kernel_load(blocks: int, words: str) -> Load:
        call = partial(kernel.launch, [blocks], [counts.COPY_THREADS], source, target, vectors)
        return Load(call, amount, f"copy.cu, {words}: {size}", right)

    return [
        kernel_load(-(-vectors // counts.COPY_TILE), "one block per tile"),
        kernel_load(_RESIDENT * machine.sm_count, "resident blocks"),
        Load(lambda: target.copy_(source), amount, f"the driver's copy: {size}", right),
    ]


def _reads(machine: Machine, seed: int) -> Sequence[Load]:
    _in_dram(machine)
    slices = counts.read_slices(machine)
    return [_read(machine, slices, 1, seed, f"read.cu: {slices.bytes >> 20} MiB read once")]


def _l2_reads(machine: Machine, seed: int) -> Sequence[Load]:
    slices = counts.l2_slices(machine)
    if slices is None:
        raise Unsupported("its L2 cache is too small for data that all SMs read")
    repeats = max(1, _L2_READ // slices.bytes)
    method = f"read.cu, past L1: {slices.bytes / 2**20:.1f} MiB read {repeats} times"
    return [_read(machine, slices, repeats, seed, method)]


def _read(machine: Machine, slices: counts.Slices, repeats: int, seed: int, method: str) -> Load:
    import torch

    source = _normal((slices.blocks, slices.count, 4), torch.float32, seed, machine.device)
    sums = torch.zeros(slices.blocks, counts.READ_THREADS, dtype=torch.int32, device=machine.device)
    kernel = compile_kernel(_FOLDER / "read.cu", "read")
    all_words = source.view(torch.int32)
    grid, block = [slices.blocks], [counts.READ_THREADS]
    launched = partial(kernel.launch, grid, block, all_words, sums, slices.count, repeats)

    def right() -> bool:
        words = source[0].view(torch.int32).view(-1, counts.READ_THREADS, 4)
        expected = words.sum(dim=(0, 2), dtype=torch.int64) * repeats
        return bool(torch.equal(expected % 2**32, sums[0].long() % 2**32))

    return Load(launched, counts.read_bytes(slices, repeats), method, right)


def _multiply_adds(real: str, machine: Machine, seed: int) -> Sequence[Load]:
    import torch

    blocks = _FMA_BLOCKS * machine.sm_count
    steps = _FMA_STEPS // (_SLOW_FP64 if real == "double" and not machine.full_fp64 else 1)
    dtype = torch.float64 if real == "double" else torch.float32
    start = _normal((blocks * counts.FMA_THREADS * counts.FMA_CHAINS,), dtype, seed, machine.device)
    end = torch.zeros_like(start)  # unset memory could hold the very result, of a call before
    kernel = compile_kernel(_FOLDER / "multiply_add.cu", "multiply_add", defines={"REAL": real})
    passed = ctypes.c_double if real == "double" else ctypes.c_float
    a, b = _GROWTH
    constants = [passed(value) for value in (a, b, 1 / a, -b / a)]
    launched = partial(kernel.launch, [blocks], [counts.FMA_THREADS], start, end, steps, *constants)

    def right() -> bool:
        return bool(torch.allclose(start, end, rtol=1e-2, atol=1e-2))

    method = (
        f"multiply_add.cu: {counts.FMA_CHAINS} chains per thread, {2 * steps} steps in registers"
    )
    return [Load(launched, counts.multiply_add_flop(blocks, steps), method, right)]


def _mma_sync(dtype: str, machine: Machine, seed: int) -> Sequence[Load]:
    import torch

    if machine.cc[0] not in _OTHER_PATH:
        raise Unsupported("its tensor cores have no faster path than mma.sync: the same ceiling")
    blocks = _MMA_BLOCKS * machine.sm_count
    a = _normal((8, 64, 16), getattr(torch, dtype), seed, machine.device)
    b = _normal((8, 32, 16), getattr(torch, dtype), seed + 1, machine.device)
    out = torch.zeros(blocks, 8, 32, device=machine.device)
    a_bits, b_bits = a.view(torch.uint16), b.view(torch.uint16)
    defines = {"BF16": 1} if dtype == "bfloat16" else {}
    kernel = compile_kernel(_FOLDER / "mma_sync.cu", "mma_sync", defines=defines)
    launched = partial(
        kernel.launch, [blocks], [counts.MMA_THREADS], a_bits, b_bits, out, _MMA_STEPS
    )

    def right() -> bool:
        product = torch.einsum("wik,wjk->wij", a.double(), b.double()) * _MMA_STEPS
        lanes = product.reshape(8, 8, 8, 4, 4, 2).sum(dim=(1, 3, 5)).reshape(8, 32)
        return _alike(out.double(), lanes.expand_as(out))

    method = f"mma_sync.cu: m16n8k16, FP32 accumulation, {16 * _MMA_STEPS} per warp in registers"
    return [Load(launched, counts.mma_flop(blocks, _MMA_STEPS), method, right)]


def _product(name: str, machine: Machine, seed: int) -> Load:
    """A product of square matrices by cuBLAS, which takes the fastest path that it knows."""
    major, minor = _SINCE.get(name, (0, 0))
    if machine.cc < (major, minor):
        raise Unsupported(f"its tensor cores lack this data type (it needs CC {major}.{minor})")
    if name == "tensor_fp64" and machine.cc not in _TENSOR_FP64:
        raise Unsupported("it has no FP64 tensor cores, or slow ones")
    size = _FP64_SIZE if name == "tensor_fp64" else _SIZE
    a, b = (_operand(name, size, seed + index, machine.device) for index in range(2))
    results: list[Any] = []
    multiply = _multiplied(name, a, b)

    def call() -> None:
        results[:] = [multiply()]

    def right() -> bool:
        expected = a[:_ROWS_CHECKED].double() @ b.double()
        return bool(results) and _alike(results[0][:_ROWS_CHECKED].double(), expected)

    words = {"tensor_fp8": "torch._scaled_mm (e4m3)", "tensor_int8": "torch._int_mm"}
    method = f"{words.get(name, 'torch.matmul')}, {size} x {size} x {size} by cuBLAS"
    return Load(call, counts.product_flop(size), method, right)


def _operand(name: str, size: int, seed: int, device: str) -> Any:
    """A matrix of normal numbers."""
    import torch

    dtypes = {
        "tensor_fp16": torch.float16,
        "tensor_bf16": torch.bfloat16,
        "tensor_tf32": torch.float32,
        "tensor_fp64": torch.float64,
    }
    if name in dtypes:
        return _normal((size, size), dtypes[name], seed, device)
    values = _normal((size, size), torch.float32, seed, device)
    if name == "tensor_int8":
        return (values * _INT8_SIGMA).round_().clamp_(-128, 127).to(torch.int8)
    return values.to(torch.float8_e4m3fn)


def _multiplied(name: str, a: Any, b: Any) -> Callable[[], Any]:
    """Of 8 bits, the second operand goes column by column: cuBLAS has no other product of them."""
    import torch

    if name == "tensor_int8":
        by_columns = b.t().contiguous().t()
        return lambda: torch._int_mm(a, by_columns)
    if name == "tensor_fp8":
        by_columns, unit = b.t().contiguous().t(), torch.ones((), device=a.device)
        return lambda: torch._scaled_mm(
            a, by_columns, unit, unit, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    return (lambda: _with_tf32(a, b)) if name == "tensor_tf32" else (lambda: torch.matmul(a, b))


def _with_tf32(a: Any, b: Any) -> Any:
    """A product of FP32 matrices in TF32, which is off for everything else."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return torch.matmul(a, b)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def _in_dram(machine: Machine) -> int:
    vectors = counts.buffer_vectors(machine)
    if not vectors:
        raise Unsupported("it has too little memory for buffers of four times its L2 cache")
    return vectors


def _normal(shape: Sequence[int], dtype: Any, seed: int, device: str) -> Any:
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    made = dtype if dtype in {torch.float32, torch.float64} else torch.float32
    return torch.randn(shape, generator=generator, dtype=made, device=device).to(dtype)


def _alike(result: Any, expected: Any) -> bool:
    return bool((result - expected).norm() <= _COARSEST * expected.norm())


_MADE: Mapping[str, Callable[[Machine, int], Sequence[Load]]] = {
    "dram": _copies,
    "dram_read": _reads,
    "l2": _l2_reads,
    "fp32": partial(_multiply_adds, "float"),
    "fp64": partial(_multiply_adds, "double"),
    "tensor_bf16_mma_sync": partial(_mma_sync, "bfloat16"),
    "tensor_fp16_mma_sync": partial(_mma_sync, "float16"),
}
