"""What every verb writes in every format on recorded data, letter by letter.

`make golden` writes the expected files again; read their diff before committing it. What differs
between machines and runs is masked: times of now, folders, versions, digits after the twelfth.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pandas as pd
import pytest
import typer
import yaml

import profkit
from profkit.commands.cli import app
from tests.conftest import H200, ROOT, Cli, baseline_folder

Golden = Callable[[str, str], str]
GOLDEN = ROOT / "tests" / "data" / "golden"
CASES: Mapping[str, list[str]] = yaml.safe_load((GOLDEN / "cases.yaml").read_text("utf-8"))
MEASURING = {"profile", "optimize", "calibrate", "ceilings", "baseline run", "doctor", "mcp", "try"}
"""Verbs that need a GPU, show this machine, or serve: errors and help have goldens."""
WIDTH = "100"
LONG = 2_000
"""Characters of a drawing or script that are shown; of a longer one its digest."""
LONG_DATA = 40_000
INPUTS = (
    "known.ncu-repz",
    "sdpa_s512_cudnn.ncu-repz",
    "sdpa_s512_flash.ncu-repz",
    "sdpa_s512_flash.sqlite",
    "sdpa_s512_flash_set_basic.ncu-repz",
    "sdpa_s512_flash_two_metrics.ncu-repz",
    "sdpa_s512_math.ncu-repz",
    "ceilings.json",
    "ladder",
    "matmul",
    "pairs/control_copy",
    "pairs/control_fma",
    "pairs/stray_double",
    "pairs/tail_effect",
    "pairs/transpose_conflicts",
    "sdpa_s512",
    "sdpa_sweep/20261121T170612Z-c6b07a",
    "sdpa_sweep/20261121T174332Z-4d7da1",
    "timing",
)
SWEEP = "reports/h200/sdpa_sweep/20261121T170612Z-c6b07a"
DERIVED = ("analysis.json", "checklist.md", "*.parquet", "report.html", "roofline.*")
STUDY = ("b32-h8-s512-d64-fp16", "b32-h8-s1024-d64-fp16")
PROFILED = "b32-h8-s1024-d64-fp16.custom"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorded files that the commands read, and with spoiled ones."""
    folder = tmp_path_factory.mktemp("golden")
    for name in INPUTS:
        place = folder / "reports" / "h200" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        recorded = H200 / name
        if recorded.is_dir():
            shutil.copytree(recorded, place, ignore=shutil.ignore_patterns(*DERIVED))
        else:
            shutil.copy(recorded, place)
    shutil.copytree(ROOT / "tests" / "data" / "claims", folder / "claims")
    shutil.copytree(ROOT / "rules", folder / "rules")
    shutil.copytree(ROOT / "targets", folder / "targets")
    small_study(folder / "study")
    latencies(folder)
    spoiled(folder)
    return folder


def small_study(place: Path) -> None:
    """Two shapes of a recorded baseline, one of them profiled."""
    recorded = baseline_folder("l4_study")
    plan = json.loads((recorded / "baseline.json").read_text("utf-8"))
    matrix = plan["asked"]["matrix"]
    matrix["shapes"] = [shape for shape in matrix["shapes"] if shape["name"] in STUDY]
    (place / "cells").mkdir(parents=True)
    (place / "baseline.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
    for shape in STUDY:
        for cell in recorded.glob(f"cells/{shape}.*.json"):
            shutil.copy(cell, place / "cells")
    profiles = json.loads((recorded / "profiles" / "profiles.json").read_text("utf-8"))
    (profile,) = [one for one in profiles if one["id"] == PROFILED]
    shutil.copytree(
        recorded / profile["folder"],
        place / profile["folder"],
        ignore=shutil.ignore_patterns(*DERIVED),
    )
    (place / "profiles" / "profiles.json").write_text(json.dumps([profile]), encoding="utf-8")


def latencies(folder: Path) -> None:
    """Files of one series each, to import."""
    for name in ("control_copy", "control_fma"):
        shutil.copy(folder / f"reports/h200/pairs/{name}/latency.json", folder / f"{name}.json")
    lines = (f"{60 + at % 7 / 10}\n" for at in range(120))
    (folder / "times.txt").write_text("".join(lines), encoding="utf-8")


def spoiled(folder: Path) -> None:
    report = (folder / "reports" / "h200" / "sdpa_s512_cudnn.ncu-repz").read_bytes()
    (folder / "cut.ncu-repz").write_bytes(report[: len(report) // 2])
    (folder / "empty.ncu-rep").touch()
    (folder / "malformed.json").write_text('{"schema": "profkit.time/1",', encoding="utf-8")
    (folder / "strange.json").write_text('{"schema": "profkit.time/99"}', encoding="utf-8")
    (folder / "rules.yaml").write_text("- rule: x\n  when: unknown_name > 1\n", encoding="utf-8")
    (folder / "text.yaml").write_text("no claims\n", encoding="utf-8")
    (folder / "mine.py").write_text("print('no target')\n", encoding="utf-8")
    changed = shutil.copytree(folder / SWEEP, folder / "changed")
    for file in (*changed.glob("*.ncu-repz"), changed / "latency.json"):
        with file.open("ab") as end:
            end.write(b" ")


@pytest.fixture
def workplace(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The inputs' folder to work in, from which everything written is removed afterward."""
    for variable in os.environ:
        if variable.startswith(("PROFKIT_", "GITHUB_", "XDG_")):
            monkeypatch.delenv(variable)
    for variable in ("FORCE_COLOR", "NO_COLOR", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", None)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})  # reports are read in this process
    monkeypatch.setenv("XDG_STATE_HOME", str(inputs / "state"))
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(inputs / "state"))
    monkeypatch.chdir(inputs)
    before = set(inputs.rglob("*"))
    yield inputs
    for path in sorted(set(inputs.rglob("*")) - before, reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The expected output of a name; what is shown now becomes it under --regenerate."""

    def expected(name: str, shown: str) -> str:
        file = GOLDEN / name
        if request.config.getoption("--regenerate"):
            file.write_text(shown, encoding="utf-8")
        return file.read_text(encoding="utf-8")

    return expected


@pytest.mark.parametrize("name", CASES)
def test_output(
    profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch, workplace: Path, golden: Golden, name: str
) -> None:
    started = datetime.now(UTC)
    parts = [shown(profkit_cli, monkeypatch, workplace, command) for command in CASES[name]]
    text = without_now("".join(parts), started)
    assert text == golden(f"{name}.txt", text)


@pytest.mark.usefixtures("workplace")
def test_help(profkit_cli: Cli, golden: Golden) -> None:
    texts = []
    for verb in ["", *verbs_below(typer.main.get_command(app))]:
        text = profkit_cli(*verb.split(), "--help", COLUMNS=WIDTH).stdout
        texts += [
            f"$ profkit {verb} --help\n",
            *(f"{line.rstrip()}\n" for line in text.split("\n")),
        ]
    assert "".join(texts) == golden("help.txt", "".join(texts))


@pytest.mark.usefixtures("workplace")
def test_doctor(profkit_cli: Cli, golden: Golden) -> None:
    document = json.loads(profkit_cli("doctor", "--format", "json").stdout)
    if document["has_gpu"]:
        pytest.skip("this machine has a GPU")
    for check in document["checks"]:
        if check["name"] not in {"GPU", "counters"}:
            check |= {"status": "?", "state": "?", "costs": "?", "remedy": "?"}
        check["state"] = re.sub(r"\(.*\)", "(?)", check["state"])
    text = json.dumps(document, indent=2) + "\n"
    assert text == golden("doctor-json.txt", text)


@pytest.mark.usefixtures("workplace")
def test_python(golden: Golden) -> None:
    folder = Path("reports/h200")
    report = profkit.load(folder / "pairs/transpose_conflicts/before.ncu-repz")
    after = profkit.load(folder / "pairs/transpose_conflicts/after.ncu-repz")
    (change,) = profkit.diff(report, after).kernels
    (kernel,) = report
    parts = [
        repr(report),
        masked(report._repr_html_()),
        repr(kernel),
        masked(kernel._repr_html_()),
        f"{change.before.name} -> {change.after.name}: {change.change}",
        masked(report.kernels.T.to_csv(lineterminator="\n")),
        masked(kernel.stalls().to_csv(lineterminator="\n")),
        masked(kernel.source_lines("samples").to_csv(lineterminator="\n")),
        masked(kernel.instructions("samples").to_csv(lineterminator="\n")),
    ]
    text = "\n".join(parts) + "\n"
    assert text == golden("python.txt", text)


def test_every_verb_and_format_is_covered() -> None:
    commands = [f"{command} " for commands in CASES.values() for command in commands]
    missing = {
        (verb, choice)
        for verb, choices in formats_of_verbs().items()
        for at, choice in enumerate(choices)
        if verb not in MEASURING
        and not any(
            command.startswith(f"{verb} ")
            and (f"--format {choice} " in command or (at == 0 and "--format" not in command))
            for command in commands
        )
    }
    assert not missing


# ---- Verbs and their formats


def verbs_below(group: Any, before: str = "") -> dict[str, Any]:
    """Verbs and groups of them, by what is typed for them."""
    found: dict[str, Any] = {}
    for word, verb in getattr(group, "commands", {}).items():
        found |= {f"{before}{word}": verb, **verbs_below(verb, f"{before}{word} ")}
    return found


def formats_of_verbs() -> dict[str, list[str]]:
    """The choices of every verb's --format, "" where it has none; brief is the terminal's."""
    found = {}
    for name, verb in verbs_below(typer.main.get_command(app)).items():
        if not hasattr(verb, "commands"):
            hint = get_type_hints(verb.callback).get("format")
            kinds = [word for kind in (hint, *get_args(hint)) for word in get_args(kind)]
            words = [word for word in kinds if isinstance(word, str) and word != "brief"]
            found[name] = list(dict.fromkeys(words)) or [""]
    return found


# ---- A command and what it shows


def shown(profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: Path, command: str) -> str:
    """A command line, its exit code, what it writes to the streams and into files."""
    words = shlex.split(command)
    monkeypatch.setattr("sys.argv", ["profkit", *words])
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    done = profkit_cli(*words, status=None)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    parts = [f"$ profkit {command}\nexit code {done.exit_code}\n"]
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        parts += [f"---- {name}\n{ended(masked(text))}"] if text else []
    files = {
        without_random(path.relative_to(folder).as_posix()): path
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size and before.get(path) != path.stat().st_mtime_ns
    }
    parts += [f"---- {name}\n{ended(masked(described(files[name])))}" for name in sorted(files)]
    text = "".join(parts).replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    return f"{without_random(text)}\n"


def without_random(text: str) -> str:
    """Without the names of the folders that kept baselines lie in."""
    return re.sub(r'(/NVIDIA_H200/|"folder": ")[0-9a-f]{12}\b', r"\1RANDOM", text)


def ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n(no newline at the end)\n"


def described(path: Path) -> str:
    """The text of a file, or the shape and values of a binary one."""
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        types = "".join(f"{name}: {kind}\n" for name, kind in frame.dtypes.items())
        return types + frame.to_csv(index=False, lineterminator="\n")
    data = path.read_bytes()
    if path.suffix in {".ncu-rep", ".ncu-repz"}:
        return f"report of {len(data)} bytes\n"
    if path.suffix == ".png":
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        return f"PNG of {width} x {height}\n"
    return data.decode("utf-8")


def masked(text: str) -> str:
    """A text without what differs between machines; drawings and scripts as digests."""
    text = re.sub(r"<svg\b.*?</svg>", drawing, text, flags=re.DOTALL)
    text = re.sub(r"(<script>)(.*?)(</script>)", script, text, flags=re.DOTALL)
    text = re.sub(r"(<style>)(.*?)(</style>)", script, text, flags=re.DOTALL)
    text = re.sub(r"(<script type=[^>]*>)(.*?)(</script>)", data, text, flags=re.DOTALL)
    text = re.sub(r"profkit(/\w+)+/(\w+\.yaml)", r"\2", text)
    text = re.sub(rf"(profkit\W{{1,4}}){re.escape(profkit.__version__)}", r"\1VERSION", text)
    text = re.sub(r"^ *\d+\.\d s  ", "T s  ", text, flags=re.MULTILINE)
    return re.sub(r"\d+\.\d+(?:e[+-]?\d+)?", rounded, text)


def rounded(number: re.Match[str]) -> str:
    digits = re.sub(r"e.*|\.", "", number[0]).lstrip("0")
    return number[0] if len(digits) <= 12 else repr(float(f"{float(number[0]):.12g}"))


def drawing(svg: re.Match[str]) -> str:
    """A drawing's texts and digest where it is long; matplotlib's names in it are random."""
    text = re.sub(r"<metadata>.*?</metadata>", "", svg[0], flags=re.DOTALL)
    identifiers = dict.fromkeys(re.findall(r'id="([a-z][0-9a-f]{10})"', text))
    for at, identifier in enumerate(identifiers):
        text = text.replace(identifier, f"id{at}")
    if len(text) <= LONG:
        return text
    words = re.findall(r"<!-- (.*?) -->|<text\b[^>]*>(.*?)</text>", text, re.DOTALL)
    lines = [" ".join("".join(pair).split()) for pair in words]
    size = re.findall(r'\b(?:width|height|viewBox)="([^"]*)"', text[: text.index(">")])
    return "\n".join([f"<svg> {' '.join(size)}, {digest(text)}", *lines, "</svg>"])


def script(found: re.Match[str]) -> str:
    return found[0] if len(found[2]) <= LONG else f"{found[1]}{digest(found[2])}{found[3]}"


def data(found: re.Match[str]) -> str:
    """The data of a page, a value a line where they aren't many; else what they are."""
    text = masked(json.dumps(json.loads(found[2]), indent=0, ensure_ascii=False))
    return found[1] + (text if len(text) <= LONG_DATA else digest(text)) + found[3]


def digest(text: str) -> str:
    return f"{len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"


def without_now(text: str, started: datetime) -> str:
    """A text in which times since a start are masked; recorded ones stay."""
    ends = datetime.now(UTC) + timedelta(seconds=1)

    def hidden(found: re.Match[str]) -> str:
        with suppress(ValueError):
            time = datetime.fromisoformat(found[0])
            if started - timedelta(seconds=1) <= time.replace(tzinfo=UTC) <= ends:
                return "NOW"
        return found[0]

    return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\+00:00|Z)?", hidden, text)
