"""Spoiled files of every format, through the command line: one line and an exit code, always.

A few of each format, PROFKIT_FUZZ_INPUTS of all, or as many as PROFKIT_FUZZ_SECONDS suffice for;
PROFKIT_FUZZ_SEED says which (0): the n-th case of a seed is always the same. `make fuzz` takes
minutes, with a seed of its own.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from profkit.comparison.gates import parse_gates
from profkit.core.errors import UsageError
from profkit.core.expression import parse
from tests.conftest import NIGHTLY
from tests.fuzz.formats import Format, formats
from tests.fuzz.mutations import expression
from tests.fuzz.zygote import Outcome, Zygote

SECONDS = float(os.environ.get("PROFKIT_FUZZ_SECONDS", "0"))
INPUTS = int(os.environ.get("PROFKIT_FUZZ_INPUTS", "0"))
OF_EACH_FORMAT = 2 if NIGHTLY else 1
SEED = int(os.environ.get("PROFKIT_FUZZ_SEED", "0"))
LONGEST, LARGEST = 20.0, 500.0
"""Seconds of CPU and MB of memory that any input may take."""
_ENDS = {0, 1, 2, 3, 4, 5, 6}
_REFUSED = {2, 5}
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What makes a terminal do more than to print."""


def broken_law(done: Outcome) -> str:
    """What of the contract a command line broke; "" where nothing."""
    lines = done.stderr.strip().splitlines()  # of which some tell of progress
    failures = [line for line in lines if line.startswith("profkit: ")]
    if done.code not in _ENDS:
        return f"ended with {done.code}"
    if "Traceback" in done.stderr:
        return "a traceback"
    if control := _CONTROL.search(done.stdout + done.stderr):
        return f"the control character {control[0]!r}"
    if done.code in _REFUSED and (len(failures) != 1 or failures != lines[-1:]):
        return f"{len(failures)} lines that say why"
    if done.seconds > LONGEST:
        return f"took {done.seconds:.1f} s"
    return f"took {done.megabytes:.0f} MB" if done.megabytes > LARGEST else ""


def test_spoiled_files_end_in_one_line(tmp_path: Path) -> None:
    all_formats = formats()
    last = INPUTS or (None if SECONDS else OF_EACH_FORMAT * len(all_formats))
    numbers = itertools.islice(itertools.count(), last)
    workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(workers) as pool:
        done = list(
            pool.map(lambda _: _until_the_end(tmp_path, all_formats, numbers), range(workers))
        )
    broken = [told for _, worker in done for told in worker]
    print(f"{sum(count for count, _ in done)} spoiled files, seed {SEED}")
    assert not broken, f"{len(broken)} broken\n" + "\n".join(broken[:20])


def _until_the_end(
    tmp_path: Path, all_formats: Sequence[Format], numbers: Iterator[int]
) -> tuple[int, list[str]]:
    """Run the next cases until they or the time are over; how many, and what broke the law, whose
    folders stay."""
    broken: list[str] = []
    count = 0
    with Zygote() as zygote:
        until = time.monotonic() + SECONDS
        for number in numbers:
            if SECONDS and time.monotonic() > until:
                break
            count += 1
            folder = tmp_path / f"{number}"
            folder.mkdir()
            case = all_formats[number % len(all_formats)]
            words = case.write(folder, random.Random(f"{SEED}/{number}"))
            outcome = zygote.run(words, folder)
            if law := broken_law(outcome):
                told = f"{folder}: {case.name}: profkit {' '.join(words)}: {law}"
                broken.append(f"{told}\n{outcome.stderr[-1500:]}")
                print(broken[-1], flush=True)
            else:
                shutil.rmtree(folder)
    return count, broken


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
