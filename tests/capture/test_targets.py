"""Target scripts on CPU tensors: the protocol, the check and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profkit.capture.target import Target, Variant, load_target, normal_inputs
from profkit.core.errors import BadInput, TargetFailed, UsageError
from tests.analysis.test_views import schema

torch = pytest.importorskip("torch", reason="targets need torch")

ROOT = Path(__file__).parent.parent.parent
TARGETS = ROOT / "targets"
SMALL = ("--batch", "2", "--heads", "3", "--length", "65", "--dim", "64")

HEADER = """
import sys
from pathlib import Path

import torch

from profkit import Target, Unsupported, Variant, normal_inputs


def no_kernel(inputs):
    raise Unsupported("not on a rainy day")


def scribbles(inputs):
    inputs["x"].mul_(2)
    return inputs["x"].clone()


def raises(inputs):
    raise RuntimeError("the variant broke")


def noted(name):
    def run(inputs):
        with Path(sys.argv[1]).open("a") as file:
            file.write(name + "\\n")
        return inputs["x"] * 2

    return run


def target(**variants):
    return Target(
        name="doubled",
        shapes={"elements": 8},
        dtype="float32",
        inputs=lambda device, seed: normal_inputs(device, seed, "float32", x=(8,)),
        reference=lambda inputs: inputs["x"] + inputs["x"],
        variants=[Variant(name, run) for name, run in variants.items()],
    )

"""


def run(
    script: Path, *arguments: str, status: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2", **variables}
    environment.pop("CUBLAS_WORKSPACE_CONFIG", None)
    command = [sys.executable, str(script), *arguments, "--device", "cpu"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=600, check=False
    )
    assert done.returncode == status, done.stderr
    return done


def written(folder: Path, variants: str) -> Path:
    """A target script of these variants (keyword arguments, as source)."""
    script = folder / "doubled.py"
    script.write_text(
        f"{HEADER}\ntarget = target({variants})\nif __name__ == '__main__':\n    target.main()\n"
    )
    return script


def checked(
    script: Path, folder: Path, *arguments: str, status: int = 0
) -> tuple[dict[str, Any], str]:
    """The written report and stdout of a check."""
    report = folder / "check.json"
    done = run(script, "--check", "--report", str(report), *arguments, status=status)
    return json.loads(report.read_text()), done.stdout


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variant["name"]: variant for variant in report["variants"]}


def test_list_prints_what_is_declared() -> None:
    done = run(TARGETS / "sdpa_s512.py", "--list")
    told = json.loads(done.stdout)
    schema("target").validate(told)
    assert told["schema"] == "profkit.target/1"
    assert told["name"] == "sdpa_s512"
    assert told["dtype"] == "float16"
    assert told["shapes"] == {"batch": 32, "heads": 8, "length": 512, "dim": 64, "causal": False}
    assert told["work"]["flop"] == 17_179_869_184
    assert told["variants"] == ["sdpa", "flash", "cudnn", "efficient", "math", "custom"]


def test_a_reference_that_works_in_place_changes_nothing_for_the_variants() -> None:
    def reference(inputs: Any) -> Any:
        inputs["rows"] += 1
        return inputs["x"].mul_(2)[inputs["rows"]]

    made = Target(
        name="in_place",
        shapes={},
        dtype="float64",
        inputs=lambda device, seed: {
            **normal_inputs(device, seed, "float64", x=(8,)),
            "rows": torch.arange(4, device=device),
        },
        reference=reference,
        variants=[
            Variant("right", lambda inputs: inputs["x"][inputs["rows"] + 1] * 2),
            Variant("wrong", lambda inputs: inputs["x"][inputs["rows"]]),
        ],
    )
    right, wrong = made.check("cpu")
    assert right.status == "passed"
    assert wrong.status == "failed"


@pytest.mark.parametrize(
    ("dtype", "causal"), [("float16", ("--causal",)), ("bfloat16", ()), ("float32", ("--causal",))]
)
def test_attention_passes_and_what_needs_a_gpu_is_unsupported(
    dtype: str, causal: tuple[str, ...], tmp_path: Path
) -> None:
    script = TARGETS / "sdpa_sweep.py"
    report, told = checked(script, tmp_path, *SMALL, "--dtype", dtype, *causal)
    schema("check").validate(report)
    variants = by_name(report)
    for name in ("default", "math"):
        assert variants[name]["status"] == "passed"
        assert 0 < variants[name]["error"] <= variants[name]["bound"]
    for name in ("cudnn", "efficient", "custom"):
        assert variants[name]["status"] == "unsupported"
        assert variants[name]["reason"]
    assert "unsupported  the kernel needs a CUDA device" in told
    assert report["shapes"]["causal"] is bool(causal)
    assert (report["dtype"], report["device"], report["seed"]) == (dtype, "cpu", 42)
    assert report["fingerprint"]["flags"]["deterministic_algorithms"] is True
    assert len(report["fingerprint_sha256"]) == 64


def test_matmul_passes(tmp_path: Path) -> None:
    sizes = ("--m", "33", "--n", "65", "--k", "127")
    report, _ = checked(TARGETS / "matmul.py", tmp_path, *sizes)
    assert {variant["status"] for variant in report["variants"]} == {"passed"}
    assert report["work"]["flop"] == 2 * 33 * 65 * 127


WRONG = {
    "lambda inputs: inputs['x'] * 2.001": "relative error 5.0e-04 is above 1e-05",
    "lambda inputs: inputs['x'] * float('nan')": "8 of 8 values are not finite",
    "lambda inputs: inputs['x'] * 1e39": "8 of 8 values are not finite",
    "lambda inputs: torch.empty_like(inputs['x'])": "8 of 8 values are not finite",
    "lambda inputs: inputs['x'][:4] * 2": "shape (4,), the reference has (8,)",
    "lambda inputs: inputs['x'].double() * 2": "dtype float64, the target declares float32",
    "lambda inputs: [inputs['x'] * 2]": "returned list, not a tensor",
    "scribbles": "writes to its inputs (x)",
    "raises": "RuntimeError: the variant broke",
}


def test_wrong_variants_fail_and_their_neighbors_do_not(tmp_path: Path) -> None:
    right = "lambda inputs: inputs['x'] * 2"
    variants = [
        f"right{number}={right}, wrong{number}={wrong}" for number, wrong in enumerate(WRONG)
    ]
    report_file = tmp_path / "check.json"
    script = written(tmp_path, ", ".join(variants))
    done = run(script, "--check", "--report", str(report_file), status=6)
    names = ", ".join(f"wrong{number}" for number in range(len(WRONG)))
    assert done.stderr == f"profkit: doubled: {names} failed the check\n"
    found = by_name(json.loads(report_file.read_text()))
    for number, reason in enumerate(WRONG.values()):
        assert found[f"wrong{number}"]["status"] == "failed"
        assert found[f"wrong{number}"]["reason"] == reason
        assert found[f"right{number}"]["status"] == "passed"


def test_each_variant_is_warmed_up_then_called_once_in_order(tmp_path: Path) -> None:
    script = written(tmp_path, "c=noted('c'), gone=no_kernel, a=noted('a'), b=noted('b')")
    calls = tmp_path / "calls"
    done = run(script, str(calls))
    assert calls.read_text().split() == ["c", "a", "b", "c", "a", "b"]
    assert "gone is skipped: not on a rainy day" in done.stderr
    calls.unlink()
    done = run(script, str(calls), "--variant", "b", "--variant", "c", "--variant", "b")
    assert calls.read_text().split() == ["c", "b", "c", "b"]


def test_nothing_that_can_run_is_the_environments_fault(tmp_path: Path) -> None:
    script = written(tmp_path, "gone=no_kernel")
    assert run(script, status=4).stderr
    checked(script, tmp_path, status=4)


def test_an_unknown_variant_is_wrong_usage() -> None:
    done = run(TARGETS / "matmul.py", "--variant", "matmull", status=2)
    assert done.stderr == ("profkit: matmul: no variant 'matmull'; use matmul, transposed\n")


def test_an_option_that_nobody_knows_is_wrong_usage() -> None:
    done = run(TARGETS / "matmul.py", "--chekc", status=2)
    assert "--chekc" in done.stderr


def test_options_are_never_passed_over(tmp_path: Path) -> None:
    script = written(tmp_path, "a=lambda inputs: inputs['x'] * 2")
    done = run(script, "--chek", status=2)
    assert done.stderr.startswith("profkit: doubled: no option --chek; ")
    done = run(script, "--rows", "5", status=2)
    assert "no option --rows; the script's own go through main(options=...)" in done.stderr
    assert run(TARGETS / "matmul.py", "--mm", "5", status=2).stderr.count("\n") == 1
    done = run(script, "--seed", "x", status=2)
    assert done.stderr.count("\n") == 1
    assert "invalid int value: 'x'" in done.stderr


@pytest.mark.parametrize(
    ("valid", "invalid", "problem"),
    [
        ('name="doubled"', 'name="dou bled"', "'dou bled' is not a valid name"),
        ('dtype="float32"', 'dtype="half"', "dtype 'half' is not one of"),
        ('dtype="float32",', "", "missing 1 required positional argument: 'dtype'"),
        ("reference=", "references=", "unexpected keyword argument 'references'"),
    ],
)
def test_an_invalid_declaration_is_one_line(
    tmp_path: Path, valid: str, invalid: str, problem: str
) -> None:
    script = written(tmp_path, "a=raises")
    text = script.read_text()
    assert valid in text
    script.write_text(text.replace(valid, invalid))
    with pytest.raises(TargetFailed, match="can't be imported") as error:
        load_target(script)
    assert problem in error.value.message


def test_dashes_before_the_options_of_a_script_are_skipped(tmp_path: Path) -> None:
    script = written(tmp_path, "a=raises")
    assert json.loads(run(script, "--", "--list").stdout)["name"] == "doubled"
    done = run(TARGETS / "sdpa_sweep.py", "--list", "--", "--length", "96")
    assert json.loads(done.stdout)["shapes"]["length"] == 96


def test_without_torch_its_installation_is_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    )
    script = written(tmp_path, "a=raises")
    script.write_text(script.read_text().replace("import torch\n", ""))
    for arguments in ((), ("--check",)):
        done = run(script, *arguments, status=4)
        assert done.stderr.startswith(
            "profkit: torch is not installed; pip install torch, or '.[gpu]'"
        )
        assert done.stderr.count("\n") == 1
    run(script, "--list")


def test_a_variant_that_raises_in_a_run_shows_its_traceback(tmp_path: Path) -> None:
    done = run(written(tmp_path, "wrong=raises"), status=6)
    assert "RuntimeError: the variant broke" in done.stderr


def test_an_environment_that_cannot_be_locked_is_reported(tmp_path: Path) -> None:
    done = run(written(tmp_path, "a=no_kernel"), NVIDIA_TF32_OVERRIDE="1", status=4)
    assert done.stderr.count("\n") == 1
    assert "unset NVIDIA_TF32_OVERRIDE" in done.stderr


def test_seeds_make_the_inputs() -> None:
    first, again, other = (
        normal_inputs("cpu", seed, "float16", q=(4, 3))["q"] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.dtype == torch.float16


ONE = """
import sys
from profkit import Target, Variant, Work, normal_inputs
READ
target = Target(
    name="one", shapes={"n": 4}, dtype="float32",
    work=Work.elementwise(4, reads=1, writes=1, flop_per_element=1, element_bytes=4),
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(4,)),
    reference=lambda inputs: inputs["a"], variants=[Variant("same", lambda inputs: inputs["a"])],
)
"""


@pytest.mark.parametrize(
    "read",
    [
        "'--causal' in sys.argv", "sys.argv[1]", "sys.argv[1:]", "list(sys.argv)",
        "sys.argv.copy()", "sys.argv.index('--causal')", "sys.argv.count('--causal')",
        "sys.argv.pop()", "[] + [*sys.argv]", "sys.argv + []", "len(sys.argv) > 1",
    ],
)  # fmt: skip
def test_a_target_may_read_its_options_as_it_likes(tmp_path: Path, read: str) -> None:
    script = tmp_path / "one.py"
    script.write_text(ONE.replace("READ", f"causal = {read}"), encoding="utf-8")
    assert load_target(script, ["--causal"]).name == "one"


def test_torchs_backends_are_held_around_calls_and_not_in_them() -> None:
    import torch

    target = load_target(TARGETS / "sdpa_sweep.py", SMALL)
    inputs = target.inputs("cpu", 1)
    (math,) = target.chosen(["math"])
    enabled = torch.backends.cuda.flash_sdp_enabled
    assert enabled()
    with math.around():
        assert not enabled()
        assert math.run(inputs).shape == inputs["q"].shape
    assert enabled()
    (default,) = target.chosen(["default"])
    with default.around():
        assert enabled()


def test_options_that_a_target_does_not_read_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text(ONE.replace("READ", "me = sys.argv[0]"), encoding="utf-8")
    with pytest.raises(UsageError, match="takes no options, --causal "):
        load_target(script, ["--causal"])


def test_load_target_yields_the_callables(tmp_path: Path) -> None:
    target = load_target(TARGETS / "sdpa_sweep.py", [*SMALL, "--causal"])
    assert target.shapes["length"] == 65
    inputs = target.inputs("cpu", 1)
    (math,) = target.chosen(["math"])
    assert math.run(inputs).shape == (2, 3, 65, 64)
    with pytest.raises(UsageError, match="no variant 'x'; use default, flash"):
        target.chosen(["x"])
    for words, why in (
        (["--length", "0"], "sdpa_sweep.py: --length must be at least 1, not 0"),
        (["--lenght", "16"], "sdpa_sweep.py: no option --lenght; use .*--length S"),
        (["--dtype", "fp17"], "argument --dtype: invalid choice: 'fp17'"),
    ):
        with pytest.raises(UsageError, match=why):
            load_target(TARGETS / "sdpa_sweep.py", words)
    with pytest.raises(UsageError, match="takes no options, --length "):
        load_target(TARGETS / "sdpa_s512.py", ["--length", "32"])
    with pytest.raises(BadInput, match="no such file"):
        load_target(tmp_path / "none.py")
    (tmp_path / "empty.py").write_text("x = 1\n")
    with pytest.raises(BadInput, match="defines 0 targets"):
        load_target(tmp_path / "empty.py")
    (tmp_path / "broken.py").write_text("import a_module_that_is_not_there\n")
    with pytest.raises(TargetFailed, match="a_module_that_is_not_there"):
        load_target(tmp_path / "broken.py")


def test_a_reference_that_cannot_be_believed_is_refused() -> None:
    def target(reference: Any) -> Target:
        return Target(
            name="t",
            shapes={},
            dtype="float32",
            inputs=lambda device, seed: normal_inputs(device, seed, "float32", x=(4,)),
            reference=reference,
            variants=[Variant("v", lambda inputs: inputs["x"])],
        )

    with pytest.raises(TargetFailed, match="not finite"):
        target(lambda inputs: inputs["x"] / 0).check("cpu")
    with pytest.raises(TargetFailed, match="not float64"):
        target(lambda inputs: inputs["x"].float()).check("cpu")
    assert target(lambda inputs: inputs["x"]).check("cpu")[0].error == 0.0


def test_declarations_that_cannot_work_are_refused() -> None:
    def declared(
        name: str = "t", dtype: str = "float32", variants: tuple[str, ...] = ("a",)
    ) -> Target:
        return Target(
            name=name,
            shapes={},
            dtype=dtype,
            inputs=lambda *_: {},
            reference=dict,
            variants=[Variant(variant, dict) for variant in variants],
        )

    for wrong in ({"variants": ("a", "a")}, {"variants": ()}, {"variants": ("a/b",)}):
        with pytest.raises(ValueError, match="name"):
            declared(**wrong)
    with pytest.raises(ValueError, match="dtype 'int8'"):
        declared(dtype="int8")
