"""`profkit baseline`: every backend at every shape, measured or made of others' latencies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from profkit.commands.baseline_report import report
from profkit.commands.formats import PlainFormat
from profkit.commands.options import Reading, interruptible, names_in
from profkit.commands.timing_options import (
    CacheOption,
    DeviceOption,
    GpuOption,
    TimerOption,
    UnitOption,
)
from profkit.core.duration import parse_duration
from profkit.core.errors import BadInput, EnvironmentProblem, TargetFailed, UsageError
from profkit.core.extras import lacking
from profkit.ui.progress import Teller

if TYPE_CHECKING:
    from profkit.study.matrix import Matrix, Value
    from profkit.study.summary import Baseline


_Masks = Literal["yes", "no", "both"]
BudgetOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="What it may take: 90s, 20m, 1h.")
]
FormatOption = Annotated[
    PlainFormat, typer.Option("--format", help="How to tell of it; json is summary.json.")
]


baseline = typer.Typer(
    name="baseline",
    help="What a change has to beat: a matrix of shapes, each measured by every backend.",
    no_args_is_help=True,
)
baseline.command(cls=Reading)(report)


@baseline.command(cls=Reading)
def run(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A target script (.py).")],
    matrix: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Shapes (YAML); may be repeated.")
    ] = None,
    batch: Annotated[str | None, typer.Option(metavar="N,...", help="Batch sizes.")] = None,
    heads: Annotated[str | None, typer.Option(metavar="N,...", help="Heads of Q.")] = None,
    kv_heads: Annotated[str | None, typer.Option(metavar="N,...", help="Heads of K and V.")] = None,
    seq: Annotated[str | None, typer.Option(metavar="N,...", help="Sequence lengths.")] = None,
    dim: Annotated[str | None, typer.Option(metavar="N,...", help="Head dimensions.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="T,...", help="fp16, bf16, fp32.")] = None,
    causal: Annotated[_Masks | None, typer.Option(help="With the causal mask or without.")] = None,
    backward: Annotated[
        bool, typer.Option("--backward", help="Gradients alone instead of forward.")
    ] = False,
    backends: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Variants of the target; all of them.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Samples a cell.")] = 100,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Of the inputs and of the order of shapes.")
    ] = 42,
    budget: BudgetOption = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="A cell that gives no answer for so long has failed: 10m."
        ),
    ] = None,
    profile: Annotated[
        Literal["none", "top", "all"],
        typer.Option(help="Profile the three best shapes, all cells, or none."),
    ] = "none",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what the folder lacks.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The baseline's folder: reports/baseline/TARGET."),
    ] = None,
    warmup_ms: Annotated[
        float, typer.Option(min=0, metavar="MS", help="Warm a cell up at least so long.")
    ] = 200,
    timer: TimerOption = "events",
    cache: CacheOption = "cold",
    device: DeviceOption = None,
    gpu: GpuOption = None,
    format: FormatOption = "terminal",
) -> None:
    """Measure a matrix of shapes by every backend of a target, a file a cell.

    Every cell is kept as soon as it is known: interrupt it when you like and go on with --resume.
    A budget is kept by fewer samples, which the cells say.

    Examples:

      profkit baseline run targets/sdpa_sweep.py --matrix targets/matrices/l4_study.yaml

      profkit baseline run targets/sdpa_sweep.py --seq 512,1024 --batch 8 --dtype fp16,bf16

      profkit baseline run targets/sdpa_sweep.py --causal both --budget 20m --out reports/b --resume
    """
    from profkit.study import plan as what
    from profkit.study.matrix import dtype_named
    from profkit.study.run import run_baseline
    from profkit.timing import stopwatch as how

    if target.suffix != ".py" or not target.is_file():
        raise BadInput(f"{target}: no such target", "give a target script, targets/NAME.py")
    sizes: dict[str, list[Value]] = {
        "batch": _wholes("--batch", batch),
        "heads": _wholes("--heads", heads),
        "kv_heads": _wholes("--kv-heads", kv_heads),
        "length": _wholes("--seq", seq),
        "dim": _wholes("--dim", dim),
        "dtype": [dtype_named(name) or name for name in dict.fromkeys(names_in(dtype))],
        "causal": _masks(causal),
        "backward": [True] if backward else [],
    }
    plan = what.BaselinePlan(
        target=target,
        matrix=_matrix(matrix or [], sizes),
        out=out or Path("reports/baseline") / target.stem,
        backends=tuple(dict.fromkeys(names_in(backends))),
        settings=how.Settings(how.Timer(timer), how.Cache(cache), warmup_ms / 1e3),
        samples=samples,
        seed=seed,
        budget=parse_duration("--budget", budget),
        timeout=parse_duration("--timeout", timeout) or what.TIMEOUT,
        profiled=what.Profiled(profile),
        device=device,
        gpu=gpu,
        resume=resume,
        command=("profkit", *sys.argv[1:]),
    )
    with interruptible(_GO_ON), Teller() as teller:
        found = run_baseline(plan, teller.tell)
    _show(found, plan.out, format)
    _refuse_nothing(found)


_GO_ON = "what was measured is kept: go on with --resume"


@baseline.command(name="import", cls=Reading)
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Raw latencies, a file a cell.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The baseline's folder.")],
    matrix: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Their shapes (YAML), in the order of the files."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where they were taken: L4, H200.")
    ] = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="What they were taken of.")
    ] = "default",
    unit: UnitOption = None,
    format: FormatOption = "terminal",
) -> None:
    """Make a baseline of latencies that others took: raw samples, one file a cell.

    What a file says of its shape is taken, or what a matrix says; what nobody says stays unknown.

    Examples:

      profkit baseline import config_*.json -o l4 --matrix targets/matrices/l4_study.yaml --gpu L4

      profkit baseline import samples.txt --unit us -o theirs
    """
    from profkit.study.importing import import_latencies
    from profkit.study.matrix import read_matrix
    from profkit.study.run import summarise

    shapes = read_matrix(matrix) if matrix else None
    import_latencies(
        files,
        out,
        matrix=shapes,
        gpu=gpu,
        backend=backend,
        unit=unit,
        command=("profkit", *sys.argv[1:]),
    )
    _show(summarise(out), out, format)


def _show(found: Baseline, folder: Path, format: PlainFormat) -> None:
    from profkit.core.text_files import read_text
    from profkit.study.folder import SUMMARY, read_plan
    from profkit.study.view import baseline_terminal

    if problem := lacking("a table", "pandas", "pyarrow"):
        typer.echo(f"profkit: no cells.parquet: {problem}", err=True)
    if format == "json":
        sys.stdout.write(read_text(folder / SUMMARY))
        return

    if plan := read_plan(folder):
        sys.stdout.write(baseline_terminal(found, plan, str(folder)))


def _refuse_nothing(found: Baseline) -> None:
    """End with what is in the way where not one cell could be measured."""
    if any(row.is_timed for row in found.rows):
        return
    first = found.rows[0] if found.rows else None
    if first is None:
        raise EnvironmentProblem("nothing was measured", "give a larger --budget")
    kind = TargetFailed if first.status.value in {"wrong", "failed"} else EnvironmentProblem
    raise kind(f"nothing could be measured; {first.id}: {first.reason}", "see the list above")


def _matrix(paths: list[Path], sizes: dict[str, list[Value]]) -> Matrix:
    from profkit.study.matrix import combined, joined, matrix_of, read_matrix

    given = {name: values for name, values in sizes.items() if values}
    if paths:
        over = {"backward", "causal"} & set(given) or set(given)
        if given:
            raise UsageError(
                f"--matrix names the shapes, so {_option(sorted(over)[0])} can't too",
                "leave one of them out",
            )
        return joined([read_matrix(path) for path in paths])
    return matrix_of("command line", "", combined(given))


def _option(name: str) -> str:
    return f"--{'seq' if name == 'length' else name.replace('_', '-')}"


def _masks(causal: _Masks | None) -> list[Value]:
    if causal is None:
        return []
    return [False, True] if causal == "both" else [causal == "yes"]


def _wholes(option: str, text: str | None) -> list[Value]:
    found: list[Value] = []
    for name in dict.fromkeys(names_in(text)):
        if not name.isdecimal() or int(name) < 1:
            raise UsageError(f"{option} {text!r} is no list of sizes", f"{option} 128,256")
        found.append(int(name))
    return found
