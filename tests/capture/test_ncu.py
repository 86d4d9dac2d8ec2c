"""Messages of ncu among the output of the profiled program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from profkit.capture.ncu import NcuOptions, Progress, collected, command, profile
from profkit.capture.tools import Tool
from profkit.core.errors import EnvironmentProblem, ProfkitError, TargetFailed, UsageError

CHATTER = "No section. No space left on device. LibraryNotLoaded. No kernels were profiled"


def recorded(folder: Path, script: str, seen: list[Progress] | None = None) -> tuple[str, ...]:
    report = folder / "x.ncu-rep"
    script = f"import os, sys, time\nsay = sys.stdout.write\n{script}\n"
    return profile(
        [sys.executable, "-u", "-S", "-c", script, str(report)],
        report,
        environment=dict(os.environ),
        timeout=600,
        on_progress=None if seen is None else seen.append,
    )


WRITTEN = "open(sys.argv[1], 'w').close()"


def test_what_the_program_prints_is_no_error_of_ncus(tmp_path: Path) -> None:
    assert (
        recorded(tmp_path, f"say('{CHATTER}\\nUnsupported API during capture (x)')\n{WRITTEN}")
        == ()
    )
    with pytest.raises(EnvironmentProblem, match="ncu ended with status 3: No section"):
        recorded(tmp_path, f"say('{CHATTER}')\nsys.exit(3)")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("==ERROR== Failed to find metric x", UsageError, "section or metric"),
        ("0%....50%==ERROR== LibraryNotLoaded", EnvironmentProblem, "access to the GPU"),
        ("==WARNING== No kernels were profiled.", TargetFailed, "profiled no kernel"),
        ("==ERROR== Unsupported API during capture (cuX)", EnvironmentProblem, "cuX"),
        ("==ERROR== Something new", EnvironmentProblem, "wrote no report|Something new"),
    ],
)
def test_an_error_of_ncu_is_reported_when_it_failed_or_wrote_nothing(
    tmp_path: Path, said: str, kind: type[ProfkitError], words: str
) -> None:
    say = f"say('''{CHATTER}\\n{said}\\n''')"
    with pytest.raises(kind, match=words):
        recorded(tmp_path, say)
    with pytest.raises(kind, match=words):
        recorded(tmp_path, f"{say}\n{WRITTEN}\nsys.exit(1)")


def test_an_error_beside_a_report_is_handed_on(tmp_path: Path) -> None:
    script = f"say('==WARNING== slow\\n==ERROR== Skipping a range\\n')\n{WRITTEN}"
    assert recorded(tmp_path, script) == ("Skipping a range",)


class Told(list[Progress]):
    """What is told, each with a file that has the number of its kernel."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def append(self, progress: Progress) -> None:
        super().append(progress)
        (self._folder / f"kernel{progress.kernels}").touch()


def test_progress_is_counted_once_however_the_pieces_fall(tmp_path: Path) -> None:
    seen = Told(tmp_path)
    recorded(
        tmp_path,
        f"""
for number in range(3):
    say('text - 7 passes ')
    for piece in ('==PR', 'OF== Profiling "k%d" - 0:' % number):
        say(piece)
        time.sleep(0.02)
    while not os.path.exists('{tmp_path}/kernel%d' % (number + 1)):
        time.sleep(0.01)
    for piece in (' 0%....', '100% - 4 pa', 'sses'):
        say(piece)
        time.sleep(0.02)
    say('\\\\n')
{WRITTEN}""".replace("\\\\", "\\"),
        seen,
    )
    assert seen[-1] == Progress(3, "k2", 12)
    assert [one.kernels for one in seen] == sorted(one.kernels for one in seen)
    assert Progress(1, "k0", 0) in seen
    assert Progress(2, "k1", 4) in seen


@pytest.mark.parametrize("end", ["\\n", ""])
def test_a_program_may_print_a_lot(tmp_path: Path, end: str) -> None:
    seen: list[Progress] = []
    begun = "say('==PROF== Profiling \"k\" - 0: 0%....100% - 4 passes\\n')"
    failed = "say('\\n==ERROR== Failed to find metric x\\n')"
    chat = f"for _ in range(60_000): say('x' * 999 + '{end}')"
    with pytest.raises(UsageError, match="section or metric"):
        recorded(tmp_path, f"{begun}\n{failed}\n{chat}\nsys.exit(1)", seen)
    assert seen == [Progress(1, "k", 4)]


def test_a_file_of_sections_and_metrics(tmp_path: Path) -> None:
    file = tmp_path / "set.txt"
    file.write_text("# one\n  # two\n SpeedOfLight \n\nsm__cycles.sum\ndram__bytes.sum\n")
    assert collected(NcuOptions(str(file))) == [
        "--section", "SpeedOfLight", "--metrics", "sm__cycles.sum,dram__bytes.sum",
    ]  # fmt: skip
    words = command(Tool("ncu", ()), NcuOptions(str(file)), tmp_path / "r", ["true"])
    assert "SpeedOfLight" in words


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe", "not UTF-8"), (b"", "--set "), (b"  # a\n\n", "--set ")],
)
def test_a_file_that_names_nothing_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "set.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        collected(NcuOptions(str(file)))
