"""Compiling `.cu` files through NVRTC, which needs no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.capture import cuda_source
from profkit.capture.cuda_source import compile_kernel
from profkit.errors import BadInput, EnvironmentProblem, TargetFailed, UsageError

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
def test_an_architecture_that_is_none_is_told() -> None:
    with pytest.raises(TargetFailed, match="invalid value for --gpu-architecture"):
        compile_kernel(SERIAL_KV, "serial_kv", arch="sm_1", defines={"DIM": 64})


def test_a_source_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.cu: No such file"):
        compile_kernel(tmp_path / "none.cu", "f", arch="sm_90")


def test_arguments_are_passed_as_c_passes_them() -> None:
    passed = [cuda_source._argument(value) for value in (True, 3, 0.5)]
    assert [type(value).__name__ for value in passed] == ["c_bool", "c_int", "c_float"]
    with pytest.raises(UsageError, match="does not fit into an int"):
        cuda_source._argument(2**31)


def test_a_tensor_on_the_cpu_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match="a kernel can't take a tensor on cpu"):
        cuda_source._argument(torch.zeros(1))
