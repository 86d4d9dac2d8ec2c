"""Records the pairs and the attention ladder on this machine's GPU: `python -m kernels.record`

    reports/<gpu>/pairs/NAME/  before.ncu-repz, after.ncu-repz, latency.json, pair.yaml
    reports/<gpu>/ladder/      VARIANT.ncu-repz, latency.json, latencies of other shapes

and a manifest.json in each folder. Each target is checked against its reference and timed, its
sides taking turns; what is right is then profiled by one run of ncu, whose report is split: pairs
with the sections of kernels/sections.txt or the set of --set, the ladder with `--set full`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard

import profkit
from kernels import pair
from kernels.commands import OUT, Command, Commands, inputs_of, run_commands
from kernels.launches import LADDER, LADDER_TARGET, variants_of
from kernels.split import Whole, take_apart
from profkit.capture import ncu
from profkit.capture.gpu import VISIBLE, select
from profkit.capture.program_environment import reduced_environment
from profkit.capture.tools import Tool, find
from profkit.commands.groups import OnDevice, Place
from profkit.core.errors import EnvironmentProblem, ProfkitError
from profkit.core.fingerprint import Device
from profkit.core.integrity import MANIFEST
from profkit.core.lock import gpu_lock
from profkit.core.regular_file import digest
from profkit.core.typed_file import encode, known
from profkit.execution.placement import Placement
from profkit.timing.latency_format import LatencyFile
from profkit.timing.measurement import (
    BLOCKS,
    Subject,
    TimingPlan,
    latency_report,
    measure,
    paired,
)
from profkit.timing.stopwatch import Settings
from profkit.timing.turns import Turn, worker

SCHEMA = "profkit.recording/1"
PAIR_TARGET = Path("targets/pair.py")
BASELINE = "sdpa"
LENGTHS = (128, 256, 1024, 2048, 4096)
FEW_BLOCKS = ("--batch", "1", "--heads", "1", "--length", "4096")
_FEWER = 40
_SHORTER_WARMUP = 0.2
_ZSTD_LEVEL = 19
SECTIONS = Path(__file__).with_name("sections.txt")
_FULL = ncu.NcuOptions(profile_from_start=False)


@dataclass(frozen=True)
class Recording:
    """What is recorded of a target: latencies by file name, the sides that can run here."""

    name: str
    latencies: Mapping[str, LatencyFile]
    variants: tuple[str, ...]


@dataclass(frozen=True)
class NcuRun:
    """A run of ncu: its version, options, the GPU's name, wall seconds, launches in all."""

    version: str
    options: ncu.NcuOptions
    gpu: str
    seconds: float
    launches: int


def record(
    names: Sequence[str], out: Path, sections: str = str(SECTIONS), *, timed: bool = True
) -> tuple[str, ...]:
    """Record what is named below `out`; the names of those that failed, said on stderr.

    `sections` are those of pairs. Without `timed` pairs are only profiled.

    Raises EnvironmentProblem without a GPU or ncu, and what ncu's run raises.
    """
    tool = find("ncu")
    if tool is None:
        raise EnvironmentProblem("ncu was not found", "see `profkit doctor`")
    selection = select(None)
    gpu = selection.gpu
    if gpu is None:
        raise EnvironmentProblem(selection.problem or f"{VISIBLE} hides all GPUs", "")
    environment = {
        **reduced_environment(),
        **selection.variables,
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")])
        ),
    }
    with gpu_lock(selection.lock), _aside(out) as aside:
        recordings = list(_timed(names, environment)) if timed else list(map(_untimed, names))
        of_pairs = replace(_FULL, sections=sections, capability=gpu.compute_capability)
        for options in (of_pairs, _FULL):
            group = [each for each in recordings if (each.name == LADDER) == (options is _FULL)]
            if group:
                report = aside / f"{LADDER if options is _FULL else 'pairs'}.ncu-rep"
                started = time.monotonic()
                _profile(tool, group, report, environment, options)
                seconds = time.monotonic() - started
                run = NcuRun(tool.version_text, options, gpu.name, seconds, 0)
                _keep(group, report, out / _slug(gpu.name), run)
    done = {recording.name for recording in recordings}
    return tuple(name for name in names if name not in done)


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A folder for the whole report; ncu keeps its name, which therefore tells of no machine."""
    folder = out / ".recording"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise EnvironmentProblem(f"{folder}: {error.strerror}", "name another with --out") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _timed(names: Sequence[str], environment: Mapping[str, str]) -> Iterator[Recording]:
    """What could be timed of the named; a process goes on to the next until one fails."""
    waiting = list(names)
    while waiting:
        with worker("kernels.record", environment=environment) as turn:
            while waiting:
                name = waiting.pop(0)
                _tell(f"time {name}")
                try:
                    yield _ladder(turn) if name == LADDER else _pair(name, turn)
                except ProfkitError as error:
                    _tell(f"{name} is left out: {error}")
                    break  # a kernel that fails may have taken the device with it


def _untimed(name: str) -> Recording:
    return Recording(name, {}, variants_of(name) if name == LADDER else pair.read(name).sides)


def _pair(name: str, turn: Turn) -> Recording:
    sides = pair.read(name).sides
    report = _latencies(Subject(PAIR_TARGET), (name,), turn, sides)
    return Recording(name, {"latency.json": report}, sides)


def _ladder(turn: Turn) -> Recording:
    subject = Subject(LADDER_TARGET, variants_of(LADDER))
    report = _latencies(subject, (), turn, (BASELINE,))
    latencies = {"latency.json": report}
    shapes = {f"length_{length}.json": ("--length", str(length)) for length in LENGTHS}
    for file, arguments in {**shapes, "few_blocks.json": FEW_BLOCKS}.items():
        _tell(f"time {LADDER} {' '.join(arguments)}")
        latencies[file] = _latencies(subject, arguments, turn, (BASELINE,), brief=True)
    return Recording(LADDER, latencies, tuple(timed.latency.label for timed in report.series))


def _latencies(
    subject: Subject,
    arguments: tuple[str, ...],
    turn: Turn,
    labels: Sequence[str],
    *,
    brief: bool = False,
) -> LatencyFile:
    """Latencies of all variants, with verdicts on the others against the first of `labels`."""
    plan = TimingPlan(subjects=(subject,), arguments=arguments)
    if brief:
        plan = replace(plan, samples=_FEWER, settings=Settings(warmup=_SHORTER_WARMUP))
    else:
        plan = paired(replace(plan, blocks=BLOCKS))
    timing = measure(plan, lambda _stage, _what: None, [turn])
    if labels == (BASELINE,):
        others = [one.label for one in timing.latencies if one.label != BASELINE]
        labels = (BASELINE, *others)
    return latency_report(timing, plan, labels=labels if len(labels) > 1 else ())


def _profile(
    tool: Tool,
    recordings: Sequence[Recording],
    report: Path,
    environment: Mapping[str, str],
    options: ncu.NcuOptions,
) -> None:
    names = [recording.name for recording in recordings]
    program = [sys.executable, "-m", "kernels.launches", *names]
    for error in ncu.profile(
        ncu.command(tool, options, report, program),
        report,
        environment=environment,
        timeout=None,
        on_progress=lambda seen: _tell(f"ncu kernel {seen.kernels} {seen.name}"),
    ):
        _tell(f"ncu: {error}")


def _keep(recordings: Sequence[Recording], report: Path, out: Path, run: NcuRun) -> None:
    """Split the report by the launches' ranges and write each recording, in place of an older."""
    _tell("split")
    ranges = list(profkit.load(report).kernels["nvtx"])
    whole = take_apart(report.read_bytes())
    run = replace(run, launches=len(ranges))
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(_write, one, ranges, whole, out, run) for one in recordings]:
            done.result()


def _write(
    recording: Recording, ranges: Sequence[str], whole: Whole, out: Path, run: NcuRun
) -> None:
    is_ladder = recording.name == LADDER
    folder = out / LADDER if is_ladder else out / "pairs" / recording.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launches = {}
    for variant in recording.variants:
        indices = [at for at, told in enumerate(ranges) if told == f"{recording.name}/{variant}"]
        packed = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(whole.part(indices))
        (folder / f"{variant}.ncu-repz").write_bytes(packed)
        launches[f"{variant}.ncu-repz"] = {"launches": len(indices)}
    for file, latencies in recording.latencies.items():
        (folder / file).write_text(encode(latencies), encoding="utf-8")
    if not is_ladder:
        shutil.copyfile(pair.PAIRS / recording.name / "pair.yaml", folder / "pair.yaml")
    _write_manifest(folder, recording, launches, run)


def _write_manifest(
    folder: Path, recording: Recording, launches: Mapping[str, Mapping[str, int]], run: NcuRun
) -> None:
    report = recording.latencies.get("latency.json")
    gpu = known((report.fingerprint.gpu or Device()).name) if report else run.gpu
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "name": recording.name,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": gpu,
        "ncu": run.version,
        "options": {**asdict(run.options), "sections": Path(run.options.sections).name},
        "ncu_run": {"seconds": round(run.seconds, 3), "launches": run.launches},
        "fingerprint_sha256": report.fingerprint_sha256 if report else None,
        "files": {
            file.name: {
                "sha256": digest(file),
                "bytes": file.stat().st_size,
                **launches.get(file.name, {}),
            }
            for file in sorted(folder.iterdir())
        },
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def record_on(
    place: Placement, names: Sequence[str], out: Path, options: Sequence[str]
) -> list[str]:
    """Record each name in a process of its own, spread over GPUs; the names of those that failed.

    What an earlier call recorded before it was interrupted is taken.
    """
    folder = out / ".spread"
    head = ("-m", "kernels.record", *options, "--out", OUT)
    commands = Commands(
        tuple(Command(name, (*head, name)) for name in names),
        str(Path.cwd()),
        inputs_of([PAIR_TARGET, Path(LADDER_TARGET)]),
    )
    state = run_commands(commands, place, folder, lambda stage, _: _tell(stage), resume=True)
    for name, reason in state.given_up.items():
        _tell(f"{name} is left out: {reason}")
    for name in names:
        for recorded in sorted((folder / name).glob(f"**/{MANIFEST}")):
            kept = out / recorded.parent.relative_to(folder / name)
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            recorded.parent.rename(kept)
    failed = [name for name in names if not (folder / name).is_dir()]
    shutil.rmtree(folder)
    return failed


def _slug(gpu: str) -> str:
    return "_".join(gpu.lower().removeprefix("nvidia").split())


def _tell(what: str) -> None:
    print(f"record: {what}", file=sys.stderr, flush=True)


def main() -> int:
    """Record what the command line names, all by default; 6 where something failed."""
    parser = argparse.ArgumentParser(description="Record pairs and the ladder on this GPU.")
    known = (*pair.names(), LADDER)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"[default: all] {', '.join(known)}"
    )
    parser.add_argument("--out", type=Path, default=Path("reports"), metavar="DIR")
    parser.add_argument(
        "--set", dest="sections", default=str(SECTIONS), metavar="SET",
        help="of pairs: scout, lean, full, or a file [default: %(default)s]",
    )  # fmt: skip
    parser.add_argument("--profile-only", action="store_true", help="without latencies")
    parser.add_argument("--on", metavar="PLACE", help="local or slurm")
    parser.add_argument("--gpus", type=int, metavar="N", help="use N GPUs at most")
    parser.add_argument("--partition", metavar="NAME", help="of Slurm")
    parser.add_argument("--time", type=int, metavar="MINUTES", help="of a job of Slurm")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(known)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if asked.profile_only and asked.out == parser.get_default("out"):
        parser.error(
            "--profile-only would replace timed recordings: name another folder with --out"
        )
    try:
        names, timed = asked.names or known, not asked.profile_only
        failed: Sequence[str]
        place = Place(asked.on, asked.gpus, asked.partition, asked.time).placement(OnDevice())
        if place and len(names) > 1:
            options = ["--set", asked.sections, *([] if timed else ["--profile-only"])]
            failed = record_on(place, names, asked.out, options)
        else:
            failed = record(names, asked.out, asked.sections, timed=timed)
    except ProfkitError as error:
        print(f"profkit: {error}", file=sys.stderr)
        return error.exit_code
    if failed:
        print(f"profkit: not recorded: {', '.join(failed)}", file=sys.stderr)
    return 6 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
