"""`profkit baseline`: every backend over a matrix of shapes, measured or imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Meta

from profkit.commands import groups
from profkit.commands.kinds import RawLatencies, Script
from profkit.commands.options import Reading, interruptible, names_in, put, warn
from profkit.core.duration import parse_duration
from profkit.core.errors import BadInput, EnvironmentProblem, TargetFailed, UsageError, refusal
from profkit.core.extras import lacking, require
from profkit.core.file_name import file_name
from profkit.core.output_file import check_free
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.study.matrix import Matrix
    from profkit.study.summary_format import BaselineFile
    from profkit.timing.cell import Value

_MASKS = (("no", False), ("yes", True))

baseline = typer.Typer(
    name="baseline", help="Measure every backend over a matrix of shapes.", no_args_is_help=True
)


@baseline.command("report", cls=Reading)
def report(
    folder: Path,
    format: Literal["markdown", "html"] | None = None,
    file: Path | None = None,
    force: bool = False,
    price: Annotated[float, Meta(ge=0)] | None = None,
    ablation: Path | None = None,
) -> None:
    """Write a report of a baseline.

    It has claims, statistics, performance, the latencies to beat, and methods. The same data yield
    the same report, byte for byte. Plots of Markdown go into a folder beside the file.

    Arguments:
      folder (DIR): A baseline's folder.

    Options:
      format: Output format (default: by the file's extension, else markdown)
      file (-o, --output FILE): Output file; plots go into a folder beside it.
      price (USD): Price of a GPU hour.
      ablation (DIR): A recording of interleaved variants, for the ablation table.

    Examples:
      profkit baseline report reports/baseline/sdpa_sweep -o baseline.html
      profkit baseline report DIR --price 3.5 --ablation ladder/ -o report.md
    """  # fmt: skip
    from profkit.study.report import gather
    from profkit.study.report_document import report_document
    from profkit.ui.html import document_html
    from profkit.ui.markdown import document_markdown

    with stage_progress() as tell:
        tell("read the baseline", "")
        content = gather(folder, price=price, ladder=ablation)
        require("baseline report", "matplotlib")
        tell("write the report", "")
        document = report_document(content)
    name = f"{file_name(file.stem, '._', '-')}-drawings" if file else "drawings"
    if format == "html":
        put(document_html(document), file, force=force)
        return
    if file is not None:
        _draw(document.drawings, file.with_name(name), force=force)
    put(document_markdown(document, name), file, force=force)


def _draw(drawings: Mapping[str, str], folder: Path, *, force: bool) -> None:
    """Write plots into a folder; raises UsageError where that can't be."""
    check_free(folder, force=force and not folder.is_symlink())
    with refusal(f"{folder}: can't be written", UsageError):
        folder.mkdir(exist_ok=True)
    for drawing, svg in drawings.items():
        put(svg, folder / drawing, force=force)


@dataclass(frozen=True)
class Shapes:
    """The shapes to measure: of a file, or all combinations of sizes.

    Options:
      matrix (FILE): Shape matrix (YAML).
      batch (N,...): Batch sizes.
      heads (N,...): Query heads.
      kv_heads (N,...): Key and value heads.
      seq (N,...): Sequence lengths.
      dim (N,...): Head dimensions.
      dtype (T,...): Data types: fp16, bf16, fp32.
      causal: Causal mask
      backward: Backward pass instead of forward.
    """

    matrix: Path | None = None
    batch: str | None = None
    heads: str | None = None
    kv_heads: str | None = None
    seq: str | None = None
    dim: str | None = None
    dtype: str | None = None
    causal: Literal["yes", "no", "both"] | None = None
    backward: bool = False

    def sizes(self) -> dict[str, list[Value]]:
        """The sizes by name, without those that are not given."""
        from profkit.study.matrix import dtype_named

        sizes: dict[str, list[Value]] = {
            "batch": _sizes("--batch", self.batch),
            "heads": _sizes("--heads", self.heads),
            "kv_heads": _sizes("--kv-heads", self.kv_heads),
            "length": _sizes("--seq", self.seq),
            "dim": _sizes("--dim", self.dim),
            "dtype": [dtype_named(name) or name for name in dict.fromkeys(names_in(self.dtype))],
            "causal": [masked for word, masked in _MASKS if self.causal in {word, "both"}],
            "backward": [True] if self.backward else [],
        }
        return {name: values for name, values in sizes.items() if values}

    def all(self) -> Matrix:
        """The matrix of shapes; raises UsageError where a file and sizes are given."""
        from profkit.study.matrix import combined, matrix_of, read_matrix

        sizes = self.sizes()
        if self.matrix is None:
            return matrix_of("command line", "", combined(sizes))
        if sizes:
            name = min({"backward", "causal"} & set(sizes) or sizes)
            option = "--seq" if name == "length" else f"--{name.replace('_', '-')}"
            message = f"--matrix and {option} both set shapes"
            raise UsageError(message, "leave out one of them")
        return read_matrix(self.matrix)


@dataclass(frozen=True)
class Measurement:
    """How configurations are measured, and where results go.

    Options:
      backends (NAME,...): Variants of the target (default: all).
      samples (N): Samples per configuration.
      seed (N): Random seed of the inputs and of the order of shapes.
      budget (TIME): Time limit: 90s, 20m, 1h.
      timeout (TIME): Time limit per configuration (default: 10m).
      profile: Configurations to profile (top: those of the three best shapes)
      resume: Resume: measure only what the folder lacks.
      out (-o, --output DIR): The baseline's folder (default: reports/baseline/TARGET).
      warmup_ms (MS): Minimum warm-up time per configuration.
    """

    backends: str | None = None
    samples: groups.Count = 100
    seed: groups.Number = 42
    budget: str | None = None
    timeout: str | None = None
    profile: Literal["none", "top", "all"] = "none"
    resume: bool = False
    out: Path | None = None
    warmup_ms: Annotated[float, Meta(ge=0)] = 200


@baseline.command("run", cls=Reading)
def run(
    target: Script,
    *,
    shapes: Shapes,
    options: Measurement,
    method: groups.TimingMethod,
    where: groups.OnDevice,
    place: groups.Place,
    format: groups.PlainFormat = "terminal",
) -> None:
    """Measure every backend of a target over a matrix of shapes.

    Each configuration (a shape with a backend) is saved to a file when it is done: an interrupted
    measurement goes on with --resume. A --budget reduces the number of samples. Shapes are spread
    over the GPUs of this machine, or by --on over those of a Slurm cluster; all backends of
    a shape are measured on one of them.

    Arguments:
      target (TARGET): A target script (.py).

    Options:
      format: Format of the summary (json: summary.json)

    Examples:
      profkit baseline run targets/sdpa_sweep.py --matrix matrices/l4_study.yaml
      profkit baseline run targets/sdpa_sweep.py --seq 512,1024 --dtype fp16,bf16
      profkit baseline run targets/sdpa_sweep.py --budget 20m --resume
      profkit baseline run targets/sdpa_sweep.py --on slurm --partition gpu
    """
    from profkit.study.measurement import TIMEOUT, BaselinePlan
    from profkit.study.run import run_baseline
    from profkit.timing.measurement import BLOCKS, Subject, TimingPlan

    script = Path(target)
    if script.suffix != ".py" or not script.is_file():
        raise BadInput(f"{target}: no such target", "give a target script, targets/NAME.py")
    timing = TimingPlan(
        subjects=(Subject(script),),
        settings=method.settings(options.warmup_ms),
        samples=options.samples,
        blocks=BLOCKS,
        seed=options.seed,
        device=where.device,
        gpu=where.gpu,
    )
    plan = BaselinePlan(
        timing,
        shapes.all(),
        options.out or Path("reports/baseline") / script.stem,
        backends=tuple(dict.fromkeys(names_in(options.backends))),
        budget=parse_duration("--budget", options.budget),
        timeout=parse_duration("--timeout", options.timeout) or TIMEOUT,
        profiled=options.profile,
        resume=options.resume,
        on=place.placement(where),
        command=("profkit", *sys.argv[1:]),
    )
    left = "measured configurations are saved: go on with --resume"
    with interruptible(left), stage_progress() as tell:
        summary = run_baseline(plan, tell)
    _show(summary, plan.out, format)
    if any(row.is_timed for row in summary.cells):
        return
    if not summary.cells:
        raise EnvironmentProblem("nothing was measured", "give a larger --budget")
    first = summary.cells[0]
    kind = TargetFailed if first.status.value in {"wrong", "failed"} else EnvironmentProblem
    raise kind(f"nothing could be measured; {first.id}: {first.reason}", "see the list above")


@baseline.command("status", cls=Reading)
def status(folder: Path, format: groups.PlainFormat = "terminal") -> None:
    """Show how far a baseline is.

    Configurations by status, and of a measurement on several GPUs: what runs where and for how
    long, what was lost or given up, the rate and the remaining time.

    Arguments:
      folder (DIR): A baseline's folder.

    Options:
      format: Output format

    Examples:
      profkit baseline status reports/baseline/sdpa_sweep
    """
    from profkit.study.progress import read_status, status_document

    state = read_status(folder)
    groups.Output(format).show(state, lambda: status_document(state))


@baseline.command("cancel", cls=Reading)
def cancel(folder: Path) -> None:
    """End the measurement of a baseline on several GPUs.

    Its driver may run on another host that shares the folder. Measured configurations stay: go on
    with baseline run --resume.

    Arguments:
      folder (DIR): A baseline's folder.

    Examples:
      profkit baseline cancel reports/baseline/sdpa_sweep
    """
    from time import sleep

    from profkit.study.progress import ask_to_cancel

    put(f"{folder}: {ask_to_cancel(folder, sleep)}\n", None)


@baseline.command("import", cls=Reading)
def import_(
    files: list[RawLatencies],
    out: Path,
    matrix: Path | None = None,
    gpu: str | None = None,
    backend: str = "default",
    unit: groups.Unit | None = None,
    format: groups.PlainFormat = "terminal",
) -> None:
    """Make a baseline of latencies measured elsewhere.

    Files have raw samples, one file per configuration. Shapes come from the files or from --matrix;
    others are unknown.

    Arguments:
      files (FILE...): Raw latencies, one file per configuration.

    Options:
      out (-o, --output DIR): The baseline's folder.
      matrix (FILE): Shape matrix (YAML), in the order of the files.
      gpu (NAME): GPU that they were measured on: L4, H200.
      backend (NAME): Backend that they are of.
      format: Format of the summary (json: summary.json)

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


def _show(summary: BaselineFile, folder: Path, format: groups.PlainFormat) -> None:
    from profkit.core.typed_file import encode
    from profkit.study.view import baseline_document

    if problem := lacking("a table", "pandas", "pyarrow"):
        warn(f"no cells.parquet: {problem}")
    if format == "json":
        put(encode(summary, indent=1), None)
    else:
        output = groups.Output(format)
        output.lay_out(baseline_document(summary, str(folder), output.width))


def _sizes(option: str, text: str | None) -> list[Value]:
    names = tuple(dict.fromkeys(names_in(text)))
    if not all(name.isdecimal() and int(name) >= 1 for name in names):
        raise UsageError(f"{option} {text!r} is not a list of sizes", f"{option} 128,256")
    return [int(name) for name in names]
