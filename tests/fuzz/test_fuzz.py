"""Spoiled files of every format, through the command line: one line and an exit code, always.

PROFKIT_FUZZ_SECONDS says for how long (60), PROFKIT_FUZZ_SEED with which cases (0): the n-th case
of a seed is always the same. `make fuzz` takes minutes, with a seed of its own.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from profkit.analysis.expression import parse
from profkit.analysis.gates import parse_gates
from profkit.errors import UsageError
from tests.fuzz.formats import formats
from tests.fuzz.mutations import expression
from tests.fuzz.zygote import Outcome, Zygote

SECONDS = float(os.environ.get("PROFKIT_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("PROFKIT_FUZZ_SEED", "0"))
LONGEST, LARGEST = 5.0, 500.0
"""Seconds of CPU and MB of memory that any input may take."""
_ENDS = {0, 1, 2, 3, 4, 5, 6}
_REFUSED = {2, 5}


def broken_law(done: Outcome) -> str:
    """What of the contract a command line broke; "" where nothing."""
    lines = done.stderr.strip().splitlines()  # of which some tell of progress
    failures = [line for line in lines if line.startswith("profkit: ")]
    if done.code not in _ENDS:
        return f"ended with {done.code}"
    if "Traceback" in done.stderr:
        return "a traceback"
    if done.code in _REFUSED and (len(failures) != 1 or failures != lines[-1:]):
        return f"{len(failures)} lines that say why"
    if done.seconds > LONGEST:
        return f"took {done.seconds:.1f} s"
    return f"took {done.megabytes:.0f} MB" if done.megabytes > LARGEST else ""


def test_spoiled_files_end_in_one_line(tmp_path: Path) -> None:
    broken = []
    until = time.monotonic() + SECONDS
    all_formats = formats(tmp_path)
    with Zygote() as zygote:
        for number in itertools.count():
            case = all_formats[number % len(all_formats)]
            if time.monotonic() > until and number >= len(all_formats):
                break
            folder = tmp_path / f"{number}"
            folder.mkdir()
            words = case.write(folder, random.Random(f"{SEED}/{number}"))
            if law := broken_law(done := zygote.run(words, folder)):
                told = f"{folder}: {case.name}: profkit {' '.join(words)}: {law}"
                broken.append(f"{told}\n{done.stderr[-1500:]}")
            else:
                shutil.rmtree(folder)
    print(f"{number} spoiled files of {len(all_formats)} formats, seed {SEED}")
    assert not broken, f"{len(broken)} of {number}\n" + "\n".join(broken[:20])


_NAMES = ("duration", "l2_busy", "before_duration", "registers_per_thread")


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_any_expression_is_refused_or_evaluated() -> None:
    chance = random.Random(SEED)
    columns = {name: np.array([0.0, 1.0, np.nan, 1e300]) for name in _NAMES}
    evaluated = 0
    for _ in range(3000):
        text = expression(chance, _NAMES, depth=chance.randint(1, 8))
        try:
            value = parse(text)(columns)
        except ValueError:
            continue
        assert not np.isinf(value).any()
        evaluated += 1
        try:
            parse_gates([f"metric:{text}"])
        except UsageError:
            continue
    assert evaluated > 100
