"""`profkit baseline`: every backend over a matrix of shapes, measured or imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from profkit.commands.choices import Cache, Device, PlainFormat, Timer, Unit
from profkit.commands.options import (
    Reading,
    interruptible,
    names_in,
    put,
    seconds_of_energy,
    warn,
)
from profkit.commands.places import place_of
from profkit.core.duration import parse_duration
from profkit.core.errors import BadInput, EnvironmentProblem, TargetFailed, UsageError
from profkit.core.extras import lacking, require
from profkit.core.file_name import file_name
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.study.matrix import Matrix, Value
    from profkit.study.summary import Baseline

_Masks = Literal["yes", "no", "both"]
_MASKS: Mapping[_Masks | None, list[Value]] = {
    None: [],
    "yes": [True],
    "no": [False],
    "both": [False, True],
}

baseline = typer.Typer(
    name="baseline",
    help="Measure every backend over a matrix of shapes.",
    no_args_is_help=True,
)


@baseline.command("report", cls=Reading)
def report(
    folder: Path,
    format: Literal["markdown", "html"] | None = None,
    output: Path | None = None,
    price: float | None = None,
    ablation: Path | None = None,
) -> None:
    """Write a report of a baseline.

    It has claims, statistics, performance, the latencies to beat, and methods. The same data yield
    the same report, byte for byte. Plots of Markdown go into a folder beside the file.

    Examples:
      profkit baseline report reports/baseline/sdpa_sweep -o baseline.html
      profkit baseline report DIR --price 3.5 --ablation ladder/ -o report.md
    """  # fmt: skip
    from profkit.study.report import gather
    from profkit.study.report_document import report_document
    from profkit.ui.html import document_html
    from profkit.ui.markdown import document_markdown

    with stage_progress() as show:
        show("read the baseline", "")
        content = gather(folder, price=price, ladder=ablation)
        require("baseline report", "matplotlib")
        show("write the report", "")
        document = report_document(content)
    name = f"{file_name(output.stem, '._', '-')}-drawings" if output else "drawings"
    if format == "html":
        put(document_html(document), output)
        return
    put(document_markdown(document, name), output)
    if output is None:
        return
    drawings = output.with_name(name)
    try:
        drawings.mkdir(exist_ok=True)
        for file, svg in document.drawings.items():
            (drawings / file).write_text(svg, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{drawings}: can't be written ({error.strerror})") from None


@baseline.command("run", cls=Reading)
def run(
    target: Path,
    matrix: list[Path] | None = None,
    batch: str | None = None,
    heads: str | None = None,
    kv_heads: str | None = None,
    seq: str | None = None,
    dim: str | None = None,
    dtype: str | None = None,
    causal: _Masks | None = None,
    backward: bool = False,
    backends: str | None = None,
    samples: int = 100,
    seed: int = 42,
    budget: str | None = None,
    timeout: str | None = None,
    profile: Literal["none", "top", "all"] = "none",
    resume: bool = False,
    out: Path | None = None,
    warmup_ms: float = 200,
    timer: Timer = "events",
    cache: Cache = "cold",
    energy: bool = False,
    energy_seconds: float | None = None,
    device: Device | None = None,
    gpu: int | None = None,
    on: str | None = None,
    gpus: int | None = None,
    partition: str | None = None,
    time: int | None = None,
    format: PlainFormat = "terminal",
) -> None:
    """Measure every backend of a target over a matrix of shapes.

    Each configuration (a shape with a backend) is saved to a file when it is done: an interrupted
    measurement goes on with --resume. A --budget reduces the number of samples. Shapes are spread
    over the GPUs of this machine, or by --on over those of a Ray or Slurm cluster; all backends of
    a shape are measured on one of them.

    Examples:
      profkit baseline run targets/sdpa_sweep.py --matrix matrices/l4_study.yaml
      profkit baseline run targets/sdpa_sweep.py --seq 512,1024 --dtype fp16,bf16
      profkit baseline run targets/sdpa_sweep.py --budget 20m --resume
      profkit baseline run targets/sdpa_sweep.py --on slurm --partition gpu
    """
    from profkit.study import plan as planning
    from profkit.study.matrix import dtype_named
    from profkit.study.run import run_baseline
    from profkit.timing import stopwatch

    if target.suffix != ".py" or not target.is_file():
        raise BadInput(f"{target}: no such target", "give a target script, targets/NAME.py")
    sizes: dict[str, list[Value]] = {
        "batch": _sizes("--batch", batch),
        "heads": _sizes("--heads", heads),
        "kv_heads": _sizes("--kv-heads", kv_heads),
        "length": _sizes("--seq", seq),
        "dim": _sizes("--dim", dim),
        "dtype": [dtype_named(name) or name for name in dict.fromkeys(names_in(dtype))],
        "causal": _MASKS[causal],
        "backward": [True] if backward else [],
    }
    plan = planning.BaselinePlan(
        target=target,
        matrix=_matrix(matrix or [], {name: values for name, values in sizes.items() if values}),
        out=out or Path("reports/baseline") / target.stem,
        backends=tuple(dict.fromkeys(names_in(backends))),
        settings=stopwatch.Settings(
            stopwatch.Timer(timer), stopwatch.Cache(cache), warmup_ms / 1e3
        ),
        samples=samples,
        seed=seed,
        budget=parse_duration("--budget", budget),
        timeout=parse_duration("--timeout", timeout) or planning.TIMEOUT,
        profiled=planning.Profiled(profile),
        device=device,
        gpu=gpu,
        resume=resume,
        on=place_of(on, gpus, partition, time, gpu=gpu, device=device),
        energy=seconds_of_energy(asked=energy, seconds=energy_seconds),
        command=("profkit", *sys.argv[1:]),
    )
    left = "measured configurations are saved: go on with --resume"
    with interruptible(left), stage_progress() as show:
        summary = run_baseline(plan, show)
    _show(summary, plan.out, format)
    if any(row.is_timed for row in summary.rows):
        return
    if not summary.rows:
        raise EnvironmentProblem("nothing was measured", "give a larger --budget")
    first = summary.rows[0]
    kind = TargetFailed if first.status.value in {"wrong", "failed"} else EnvironmentProblem
    raise kind(f"nothing could be measured; {first.id}: {first.reason}", "see the list above")


@baseline.command("status", cls=Reading)
def status(folder: Path, format: PlainFormat = "terminal") -> None:
    """Show how far a baseline is.

    Configurations by status, and of a measurement on several GPUs: what runs where and for how
    long, what was lost or given up, the rate and the remaining time.

    Examples:
      profkit baseline status reports/baseline/sdpa_sweep
    """
    from profkit.core.typed_file import encode
    from profkit.study.progress import read_status, status_text

    state = read_status(folder)
    put(encode(state, dense=False) if format == "json" else status_text(state), None)


@baseline.command("cancel", cls=Reading)
def cancel(folder: Path) -> None:
    """End the measurement of a baseline on several GPUs.

    Its driver may run on another host that shares the folder. Measured configurations stay: go on
    with baseline run --resume.

    Examples:
      profkit baseline cancel reports/baseline/sdpa_sweep
    """
    from time import sleep

    from profkit.study.progress import ask_to_cancel

    put(f"{folder}: {ask_to_cancel(folder, sleep)}\n", None)


@baseline.command("import", cls=Reading)
def import_(
    files: list[Path],
    out: Path,
    matrix: Path | None = None,
    gpu: str | None = None,
    backend: str = "default",
    unit: Unit | None = None,
    format: PlainFormat = "terminal",
) -> None:
    """Make a baseline of latencies measured elsewhere.

    Files have raw samples, one file per configuration. Shapes come from the files or from --matrix;
    others are unknown.

    Examples:
      profkit baseline import config_*.json -o l4 --matrix l4_study.yaml --gpu L4
      profkit baseline import samples.txt --unit us -o theirs
    """
    from profkit.study.importing import import_latencies
    from profkit.study.matrix import read_matrix
    from profkit.study.run import summarize

    shapes, command = read_matrix(matrix) if matrix else None, ("profkit", *sys.argv[1:])
    import_latencies(
        files, out, matrix=shapes, gpu=gpu, backend=backend, unit=unit, command=command
    )
    _show(summarize(out), out, format)


def _show(summary: Baseline, folder: Path, format: PlainFormat) -> None:
    from profkit.core.text_files import read_text
    from profkit.study.folder import SUMMARY, read_plan
    from profkit.study.view import baseline_terminal

    if problem := lacking("a table", "pandas", "pyarrow"):
        warn(f"no cells.parquet: {problem}")
    if format == "json":
        put(read_text(folder / SUMMARY), None)
    elif plan := read_plan(folder):
        put(baseline_terminal(summary, plan, str(folder)), None)


def _matrix(paths: list[Path], sizes: dict[str, list[Value]]) -> Matrix:
    from profkit.study.matrix import combined, joined, matrix_of, read_matrix

    if not paths:
        return matrix_of("command line", "", combined(sizes))
    if sizes:
        name = min({"backward", "causal"} & set(sizes) or sizes)
        option = "--seq" if name == "length" else f"--{name.replace('_', '-')}"
        message = f"--matrix and {option} both set shapes"
        raise UsageError(message, "leave out one of them")
    return joined([read_matrix(path) for path in paths])


def _sizes(option: str, text: str | None) -> list[Value]:
    names = tuple(dict.fromkeys(names_in(text)))
    if not all(name.isdecimal() and int(name) >= 1 for name in names):
        raise UsageError(f"{option} {text!r} is not a list of sizes", f"{option} 128,256")
    return [int(name) for name in names]
