"""Records the stories of targets/apps on this machine's GPUs.

`python -m kernels.record_applications --out DIR [NAMES]` writes

    DIR/NAME/  before.sqlite.zst, after.sqlite.zst    some steady steps, CUDA graphs as a whole
               before.nodes.sqlite.zst, ...           the same with the kernels of graphs
               times.json                             step times without a profiler, by block
    DIR/raw/   NAME.sqlite.zst, NAME.nodes.sqlite.zst the recordings before they were cut

Sides are timed and recorded in one process, where they take turns. Programs for one GPU run on all
GPUs at once. `--overhead` times the GPT step with and without nsys in turns, as overhead.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
import zstandard

from kernels.stories import APPLICATIONS, SIDES, Story, stories, trimmed
from profkit.capture.process import TimedOut, run
from profkit.capture.program_environment import reduced_environment
from profkit.capture.tools import Tool, find
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError
from profkit.timeline import redaction

SCHEMA = "profkit.application_times/1"
LIMIT = 60.0
"""s for a program, chosen: twice what the slowest takes, torch.compile without its cache."""
RAW = "raw"
_LEVEL = 10  # of zstd for raw recordings: those travel, and are not kept
_OVERHEAD_ROUNDS = 3
TRACES = {"none": "", "cuda": "cuda,nvtx", "libraries": "cuda,nvtx,cublas,cudnn"}


class Failed(ProfkitError):
    """A program or nsys did not give what it should."""


@dataclass
class Recorder:
    """What all recordings share. `left` ends the whole when it is used up."""

    out: Path
    work: Path
    nsys: Tool
    gpus: tuple[str, ...]
    until: float
    exports: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    def environment(self, gpus: Sequence[str]) -> dict[str, str]:
        folder = self.work / f"tmp_{'_'.join(gpus)}"
        folder.mkdir(exist_ok=True)
        return {
            **reduced_environment(),
            "CUDA_VISIBLE_DEVICES": ",".join(gpus),
            "NCCL_NVLS_ENABLE": "0",
            "TORCHINDUCTOR_CACHE_DIR": str(self.work / "inductor"),
            "TMPDIR": str(folder),  # nsys's sessions at one time
        }

    def run(self, command: Sequence[str], gpus: Sequence[str]) -> str:
        limit = min(LIMIT, self.until - time.monotonic())
        if limit <= 0:
            raise Failed("the time limit of the whole recording is over", "raise --limit")
        try:
            finished = run(command, environment=self.environment(gpus), timeout=limit)
        except TimedOut as error:
            last = " | ".join(error.output.strip().splitlines()[-3:])
            raise Failed(f"{error}: {last}", "see its output") from None
        if finished.status:
            last = " | ".join(finished.output.strip().splitlines()[-6:])
            raise Failed(f"status {finished.status}: {last}", "see its output")
        return finished.output

    def program(self, name: str) -> list[str]:
        if not name.endswith(".cu"):
            return [sys.executable, str(APPLICATIONS / name)]
        return [str(self.work / name.removesuffix(".cu"))]

    def compile(self, names: Iterable[str]) -> None:
        for name in names:
            source, target = APPLICATIONS / name, self.work / name.removesuffix(".cu")
            command = ["nvcc", "-O2", "-arch=native", "-o", str(target), str(source)]
            try:
                subprocess.run(command, check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                tell(f"{name} was not compiled: {error}")  # its stories then fail, no others


def sides(story: Story) -> list[str]:
    """The arguments that run both sides in one process."""
    return [*story.arguments, *story.before, f"--against={shlex.join(story.after)}"]


def record(recorder: Recorder, story: Story, gpus: Sequence[str]) -> list[Future[None]]:
    """Time and record a story; its exports are still under way when this returns."""
    started = time.monotonic()
    folder = recorder.out / story.name
    folder.mkdir(parents=True, exist_ok=True)
    program = recorder.program(story.program)
    output = recorder.run([*program, *sides(story), "--time", "--steps=4"], gpus)
    times = last_json(output)
    _write_times(folder, story, times)
    timed = time.monotonic()
    waiting = []
    for mode in ("graph", "node") if story.nodes else ("graph",):
        name = story.name + (".nodes" if mode == "node" else "")
        report = recorder.work / f"{name}.nsys-rep"
        words = nsys_words(recorder.nsys, report, TRACES["cuda"], mode)
        command = [*words, *program, *sides(story), f"--steps={story.steps}"]
        recorder.run(command, gpus)
        waiting.append(recorder.exports.submit(_keep, recorder, story, report, mode == "node"))
    before, after = times["median_ms"]
    tell(
        f"{story.name}: {before:.3f} ms -> {after:.3f} ms, {before / after:.3f}x;"
        f" timed in {timed - started:.1f} s, recorded in {time.monotonic() - timed:.1f} s"
    )
    return waiting


def nsys_words(nsys: Tool, report: Path, trace: str, graphs: str) -> list[str]:
    words = [nsys.path, "profile", "--force-overwrite=true", f"--output={report}"]
    words += ["--sample=none", "--cpuctxsw=none", "--wait=primary", f"--trace={trace}"]
    return [*words, f"--cuda-graph-trace={graphs}"]


def last_json(output: str) -> dict[str, Any]:
    lines = [line for line in output.splitlines() if line.startswith('{"program"')]
    if not lines:
        raise Failed(f"printed no times: {output.strip()[-300:]}", "see its output")
    value: dict[str, Any] = json.loads(lines[-1])
    return value


def _write_times(folder: Path, story: Story, times: Mapping[str, Any]) -> None:
    table = {
        "schema": SCHEMA,
        "story": msgspec.to_builtins(story),
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": times["device"],
        "driver": driver(),
        **{
            side: {"steps_per_block": steps, "ms": values, "median_ms": median}
            for side, steps, values, median in zip(
                SIDES, times["steps_per_block"], times["ms"], times["median_ms"], strict=True
            )
        },
    }
    (folder / "times.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.splitlines()[0].strip()


def _keep(recorder: Recorder, story: Story, report: Path, nodes: bool) -> None:
    """Export a recording without private data, and cut it."""
    database = report.with_suffix(".sqlite")
    words = [recorder.nsys.path, "export", "--type=sqlite", "--force-overwrite=true"]
    recorder.run([*words, f"--output={database}", str(report)], recorder.gpus)
    redaction.scrub(database)
    raw = recorder.out / RAW
    raw.mkdir(parents=True, exist_ok=True)
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(database.read_bytes())
    (raw / f"{database.name}.zst").write_bytes(packed)
    cut(story, database, recorder.out / story.name, nodes)


def cut(story: Story, database: Path, folder: Path, nodes: bool) -> None:
    """Write both sides of an export as trimmed timelines."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for index, side in enumerate(SIDES):
        target = folder / f"{side}{'.nodes' if nodes else ''}.sqlite.zst"
        steps = trimmed(database, target, index)
        if not steps:
            raise Failed(f"{story.name}: {side} has too few steps", "record more with `steps`")
        parts.append(f"{target.name} {steps} steps {target.stat().st_size} bytes")
    tell(f"{story.name}: {', '.join(parts)}")


def cut_again(out: Path, raw: Path, chosen: Sequence[Story]) -> list[str]:
    """Cut recordings that were made before; the names of those that are absent or unfit."""
    failed = []
    for story in chosen:
        for nodes in (False, True) if story.nodes else (False,):
            source = raw / f"{story.name}{'.nodes' if nodes else ''}.sqlite.zst"
            try:
                with tempfile.TemporaryDirectory() as folder:
                    database = Path(folder) / source.stem
                    data = zstandard.ZstdDecompressor().decompress(source.read_bytes())
                    database.write_bytes(data)
                    cut(story, database, out / story.name, nodes)
            except (OSError, ProfkitError) as error:
                tell(f"{story.name} is left out: {error}")
                failed.append(story.name)
    return failed


def record_all(recorder: Recorder, chosen: Sequence[Story]) -> list[str]:
    """Record stories, those of several GPUs first; the names of those that failed."""
    failed: list[str] = []
    waiting: list[tuple[str, Future[None]]] = []

    def attempt(story: Story, *gpus: str) -> None:
        try:
            waiting.extend((story.name, part) for part in record(recorder, story, gpus))
        except (ProfkitError, OSError, ValueError, KeyError) as error:
            tell(f"{story.name} is left out: {error}")
            failed.append(story.name)

    for story in chosen:
        if story.gpus > len(recorder.gpus):
            tell(f"{story.name} is left out: it needs {story.gpus} GPUs")
            failed.append(story.name)
        elif story.gpus > 1:
            attempt(story, *recorder.gpus[: story.gpus])
    single = [story for story in chosen if story.gpus == 1]
    on_all_gpus(recorder.gpus, [partial(attempt, story) for story in single])
    for name, part in waiting:
        try:
            part.result()
        except (ProfkitError, OSError, ValueError) as error:
            tell(f"{name} is left out: {error}")
            failed.append(name)
    return failed


def on_all_gpus(gpus: Sequence[str], tasks: Sequence[Callable[[str], object]]) -> None:
    """Run tasks, one at a time on each GPU."""
    queue: SimpleQueue[Callable[[str], object]] = SimpleQueue()
    for task in tasks:
        queue.put(task)

    def work(gpu: str) -> None:
        while True:
            try:
                task = queue.get_nowait()
            except Empty:
                return
            task(gpu)

    with ThreadPoolExecutor(len(gpus)) as pool:
        for done in [pool.submit(work, gpu) for gpu in gpus]:
            done.result()


def record_whole(recorder: Recorder, story: Story, gpu: str) -> None:
    """A recording of the first side alone, with start and warm-up."""
    name = f"{story.name}.whole"
    report = recorder.work / f"{name}.nsys-rep"
    words = nsys_words(recorder.nsys, report, TRACES["cuda"], "graph")
    command = [*words, *recorder.program(story.program), *story.arguments, *story.before]
    recorder.run([*command, "--steps", str(story.steps)], [gpu])
    database = report.with_suffix(".sqlite")
    words = [recorder.nsys.path, "export", "--type=sqlite", "--force-overwrite=true"]
    recorder.run([*words, f"--output={database}", str(report)], [gpu])
    redaction.scrub(database)
    packed = zstandard.ZstdCompressor(level=19).compress(database.read_bytes())
    folder = recorder.out / story.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "whole.sqlite.zst").write_bytes(packed)
    tell(f"{story.name}: whole.sqlite.zst {len(packed)} bytes")


def overhead(recorder: Recorder) -> None:
    """Step times of the GPT step under nsys and without it, in turns; one mode on each GPU."""
    table: dict[str, dict[str, list[float]]] = {}

    def mode(name: str) -> Callable[[str], None]:
        def timed(gpu: str) -> None:
            medians = table.setdefault(name, {trace: [] for trace in TRACES})
            program = [*recorder.program("gpt_step.py"), "--mode", name, "--time", "--blocks=5"]
            for number in range(_OVERHEAD_ROUNDS):
                for trace, traced in TRACES.items():
                    report = recorder.work / f"overhead_{name}_{number}_{trace}.nsys-rep"
                    words = nsys_words(recorder.nsys, report, traced, "graph") if traced else []
                    try:
                        output = recorder.run([*words, *program], [gpu])
                        medians[trace] += last_json(output)["median_ms"]
                    except ProfkitError as error:
                        tell(f"overhead {name} {trace}: {error}")

        return timed

    on_all_gpus(recorder.gpus, [mode("graphs"), mode("eager")])
    for name, medians in table.items():
        for trace, values in medians.items():
            if values and medians["none"]:
                ratio = statistics.median(values) / statistics.median(medians["none"])
                tell(f"overhead {name} {trace}: {values} ms, {ratio - 1:+.2%}")
    (recorder.out / "overhead.json").write_text(json.dumps(table, indent=1) + "\n")


def tell(text: str) -> None:
    print(f"record: {text}", file=sys.stderr, flush=True)


def visible() -> tuple[str, ...]:
    """The GPUs that programs may use, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(filter(None, named.split(",")))
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(str(index) for index, _ in enumerate(done.stdout.splitlines()))


def selected(names: Sequence[str]) -> tuple[Story, ...]:
    known = {story.name: story for story in stories()}
    if unknown := [name for name in names if name not in known]:
        raise BadInput(f"there is no story {unknown[0]}", f"known: {', '.join(known)}")
    return tuple(known[name] for name in names or known)


def recorded(asked: argparse.Namespace, chosen: Sequence[Story]) -> list[str]:
    """Record what is asked for; the names of the stories that failed."""
    nsys, gpus = find("nsys"), visible()
    if nsys is None or not gpus:
        missing = "a GPU" if nsys else "nsys"
        raise EnvironmentProblem(f"{missing} was not found", "see `profkit doctor`")
    with tempfile.TemporaryDirectory(prefix="profkit-apps-") as work:
        until = time.monotonic() + asked.limit
        recorder = Recorder(asked.out, Path(work), nsys, gpus, until)
        asked.out.mkdir(parents=True, exist_ok=True)
        failed: list[str] = []
        if not asked.overhead_only:
            whole = [story for story in chosen if story.whole]
            on_all_gpus(gpus, [partial(attempted, recorder, story) for story in whole])
            if asked.whole_only:
                return failed
            recorder.compile({story.program for story in chosen if story.program.endswith(".cu")})
            failed = record_all(recorder, chosen)
        if asked.overhead or asked.overhead_only:
            overhead(recorder)
    return failed


def attempted(recorder: Recorder, story: Story, gpu: str) -> None:
    try:
        record_whole(recorder, story, gpu)
    except (ProfkitError, OSError) as error:
        tell(f"{story.name}, whole, is left out: {error}")


def main() -> int:
    """Record what the command line names, all by default; 6 where something failed."""
    parser = argparse.ArgumentParser(description="Record the stories of targets/apps on this GPU.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="[default: all]")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--limit", type=float, default=400.0, metavar="S", help="for all of it")
    parser.add_argument("--overhead", action="store_true", help="measure nsys's overhead too")
    parser.add_argument("--overhead-only", action="store_true")
    parser.add_argument("--whole-only", action="store_true", help="with start and warm-up")
    parser.add_argument("--cut", type=Path, metavar="RAW", help="only cut recordings made before")
    asked = parser.parse_args()
    started = time.monotonic()
    try:
        chosen = selected(asked.names)
        failed = cut_again(asked.out, asked.cut, chosen) if asked.cut else recorded(asked, chosen)
    except ProfkitError as error:
        print(f"profkit: {error}", file=sys.stderr)
        return error.exit_code
    tell(f"{len(chosen) - len(set(failed))} of {len(chosen)} in {time.monotonic() - started:.0f} s")
    if failed:
        print(f"profkit: not recorded: {', '.join(sorted(set(failed)))}", file=sys.stderr)
    return 6 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
