"""Cuts recorded programs to some steps: `python -m kernels.programs RUN... --out DIR`

A RUN is a folder that `profkit profile --app` wrote; of the program NAME in it

    DIR/NAME/  timeline.sqlite.zst  its last steps
               measured.json        the time of a step without a profiler, to which gains are added
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import zstandard

from kernels.stories import Window, trim_to
from profkit.application.picks_file import PICKS, PicksFile
from profkit.application.program_score import MEASURED
from profkit.application.steps import Steps, first_rank, steady_steps
from profkit.core.typed_file import read_file
from profkit.timeline import RUN_FILE
from profkit.timeline.reader import read

_MOST, _FEWEST = 6, 4  # steps, chosen: a pattern that repeats is found in four
_BYTES = 150_000  # of a timeline, compressed, chosen: 25 programs are then below 5 MiB
_LEVEL = 19  # of zstd


def kept(run: Path, folder: Path) -> int:
    """Write the last steps of a run's program, as many as fit; their number."""
    folder.mkdir(parents=True, exist_ok=True)
    export, plain = run / RUN_FILE, folder / RUN_FILE
    events = read(export)
    steps = first_rank(steady_steps(events))
    picks = read_file(run / PICKS, PicksFile, "record the run again")
    known = [picks.unprofiled.seconds * 1e3] if picks.unprofiled else []
    summary = {"summary": {"original_ms": known, "changes": {}}}
    (folder / MEASURED).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    fewest = min(_FEWEST, len(steps))
    for count in range(min(_MOST, len(steps)), fewest - 1, -1):
        window = _window(steps, count, events.origin_ns)
        trim_to(export, plain, lambda _, window=window: (window,))  # type: ignore[misc]
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(plain.read_bytes())
        plain.unlink()
        if len(packed) <= _BYTES:
            break
    plain.with_suffix(".sqlite.zst").write_bytes(packed)
    return count


def _window(steps: Steps, count: int, origin: int) -> Window:
    """The calls of the last steps."""
    bounds = steps.call_bounds
    first, last = int(bounds[-count - 1]), int(bounds[-1])
    return Window(steps.process, first + origin, last + origin)


def main() -> None:
    """Cut the runs that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of `profkit profile --app`")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for run in arguments.runs:
        name = run.resolve().parent.name
        print(name, kept(run, arguments.out / name), "steps")


if __name__ == "__main__":
    main()
