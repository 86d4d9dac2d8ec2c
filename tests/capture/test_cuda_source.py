"""Compiling `.cu` files through NVRTC, which needs no GPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from profkit.capture import cuda_source
from profkit.capture.cuda_source import Build, CudaKernel, built, compile_kernel
from profkit.core.errors import BadInput, EnvironmentProblem, TargetFailed, UsageError

SERIAL_KV = Path(__file__).parent.parent.parent / "kernels" / "attention" / "serial_kv.cu"


def compiler_missing() -> str:
    """Why NVRTC can't compile here; empty where it can."""
    try:
        cuda_source.compiler_version()
        cuda_source._headers()
    except EnvironmentProblem as error:
        return str(error)
    return ""


MISSING = compiler_missing()
needs_nvrtc = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache on disk and in memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cuda_source._compiled.cache_clear()
    return tmp_path / "cache" / "profkit" / "kernels"


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dim", [4, 64, 128])
@pytest.mark.parametrize("bf16", [{}, {"BF16": 1}])
def test_serial_kv_compiles(arch: str, dim: int, bf16: dict[str, int]) -> None:
    kernel = compile_kernel(SERIAL_KV, "serial_kv", arch=arch, defines={"DIM": dim, **bf16})
    assert kernel.cubin.startswith(b"\x7fELF")
    assert b"serial_kv" in kernel.cubin
    assert str(SERIAL_KV.parent).encode() in kernel.cubin


@needs_nvrtc
def test_code_is_kept_by_text_architecture_and_defines(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "one.cu"
    source.write_text('extern "C" __global__ void one(float* x) { x[0] = VALUE; }\n')
    first = compile_kernel(source, "one", arch="sm_90", defines={"VALUE": 1})
    assert compile_kernel(source, "one", arch="sm_90", defines={"VALUE": 1}) is first
    compile_kernel(source, "one", arch="sm_90", defines={"VALUE": 2})
    compile_kernel(source, "one", arch="sm_80", defines={"VALUE": 1})
    assert len(list(cache.glob("*.cubin"))) == 3
    assert not list(cache.glob("*.part"))

    cuda_source._compiled.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(cuda_source, "_compile", lambda *_: pytest.fail("compiled again"))
        assert compile_kernel(source, "one", arch="sm_90", defines={"VALUE": 1}) == first

    cuda_source._compiled.cache_clear()
    for file in cache.glob("*.cubin"):
        file.write_bytes(b"damaged")
    assert compile_kernel(source, "one", arch="sm_90", defines={"VALUE": 1}) == first


@needs_nvrtc
def test_options_of_arithmetic_make_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is a driver, NVRTC 13.0 gives what it compiled before without fast math, from a
    cache of its own."""
    source = tmp_path / "divide.cu"
    source.write_text('extern "C" __global__ void divide(float* x) { x[0] /= sqrtf(x[1]); }')
    core = pytest.importorskip("cuda.core")
    passed: list[dict[str, Any]] = []
    make = core.ProgramOptions

    def noted(**options: Any) -> Any:
        passed.append(options)
        return make(**options)

    monkeypatch.setattr(core, "ProgramOptions", noted)
    exact = compile_kernel(source, "divide", arch="sm_90")
    assert passed[0]["no_cache"]
    with built(Build(fast_math=True)):
        assert compile_kernel(source, "divide", arch="sm_90").cubin != exact.cubin


@needs_nvrtc
def test_a_cache_that_cannot_be_written_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compile_kernel(SERIAL_KV, "serial_kv", arch="sm_90", defines={"DIM": 64}).cubin


@needs_nvrtc
def test_an_error_shows_the_line_it_is_about(tmp_path: Path) -> None:
    source = tmp_path / "kernels" / "wrong.cu"
    source.parent.mkdir()
    source.write_text('extern "C" __global__ void f(float* x) {\n  y = 1;\n  x[0] = z;\n}\n')
    with pytest.raises(TargetFailed) as error:
        compile_kernel(source, "f", arch="sm_90")
    assert str(error.value).splitlines() == [
        "kernels/wrong.cu does not compile for sm_90:",
        '  kernels/wrong.cu(2): error: identifier "y" is undefined',
        "    2 | y = 1;",
        '  kernels/wrong.cu(3): error: identifier "z" is undefined',
        "    3 | x[0] = z;",
    ]


@needs_nvrtc
def test_an_invalid_architecture_is_reported() -> None:
    with pytest.raises(TargetFailed, match="invalid value for --gpu-architecture"):
        compile_kernel(SERIAL_KV, "serial_kv", arch="sm_1", defines={"DIM": 64})


def test_a_source_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.cu: No such file"):
        compile_kernel(tmp_path / "none.cu", "f", arch="sm_90")


def test_arguments_are_passed_as_c_passes_them() -> None:
    passed = [cuda_source._argument(value) for value in (True, 3, 0.5)]
    assert [type(value).__name__ for value in passed] == ["c_bool", "c_int", "c_float"]
    assert cuda_source._argument(np.int64(-2)).raw == (-2).to_bytes(8, "little", signed=True)
    with pytest.raises(UsageError, match="int64"):
        cuda_source._argument(2**31)


def test_a_tensor_on_the_cpu_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match="a kernel can't take a tensor on cpu"):
        cuda_source._argument(torch.zeros(1))


@pytest.mark.parametrize(
    ("size", "asked"), [(48 * 1024, []), (48 * 1024 + 16, [48 * 1024 + 16])], ids=["48K", "more"]
)
def test_more_shared_memory_than_granted_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, size: int, asked: list[int]
) -> None:
    launched = stand_in_for_the_device(monkeypatch, status=0)
    CudaKernel("f", "sm_90", b"").launch((1,), (32,), 1, shared_bytes=size)
    assert launched == [*asked, size]


def test_too_much_shared_memory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    launched = stand_in_for_the_device(monkeypatch, status=1)
    with pytest.raises(EnvironmentProblem, match=r"f: 300000 bytes of shared memory per block"):
        CudaKernel("f", "sm_90", b"").launch((1,), (32,), shared_bytes=300_000)
    assert launched == [300_000]


def stand_in_for_the_device(monkeypatch: pytest.MonkeyPatch, status: int) -> list[int]:
    """No kernel is loaded or launched; bytes of shared memory asked for and launched with."""
    torch = pytest.importorskip("torch")
    core = pytest.importorskip("cuda.core")
    driver = pytest.importorskip("cuda.bindings.driver")
    seen: list[int] = []

    def allow(_attribute: Any, size: int, _kernel: Any, _device: int) -> tuple[Any]:
        seen.append(size)
        return (driver.CUresult(status),)

    def launch(*values: Any) -> tuple[Any]:
        seen.append(values[7])
        return (driver.CUresult(0),)

    device = SimpleNamespace(device_id=0, set_current=bool)
    stream = SimpleNamespace(cuda_stream=0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(core, "Device", lambda _: device)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(driver, "cuLaunchKernel", launch)
    monkeypatch.setattr(driver, "cuKernelSetAttribute", allow)
    monkeypatch.setattr(CudaKernel, "_loaded", SimpleNamespace(handle=0))
    return seen
