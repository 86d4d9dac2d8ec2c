"""Recording, as far as it goes without a GPU: what is written, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernels import record
from kernels.recorded import LATENCY, profile, timed
from kernels.split import take_apart
from profkit.capture.ncu import NcuOptions
from profkit.core.errors import EnvironmentProblem
from profkit.core.regular_file import digest
from profkit.timing.latency import compare_with
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import LatencyFile
from tests.conftest import pair_folder, pair_report

NAME = "fuse_passes"  # its `before` is two launches
RUN = record.NcuRun("2025.3.1", NcuOptions("lean"), "NVIDIA H200", 1.5, 2)


def plain(side: str) -> bytes:
    return pair_report(NAME, side).read_bytes()


def latencies() -> LatencyFile:
    sides = timed(pair_folder(NAME) / LATENCY)
    saved = read_latencies(pair_folder(NAME) / LATENCY)
    assert saved.file
    (pair,) = compare_with(sides["before"], [sides["after"]])
    return LatencyFile(
        series=tuple(sides.values()),
        comparisons=(pair.comparison,),
        fingerprint=saved.fingerprint,
        fingerprint_sha256=saved.fingerprint_sha256,
        seed=saved.file.seed,
        warmup=saved.file.warmup,
    )


def test_a_recording_takes_an_older_one_s_place(tmp_path: Path) -> None:
    older = tmp_path / "pairs" / NAME
    older.mkdir(parents=True)
    (older / "old.json").write_text("{}")
    before = take_apart(plain("before"))
    assert before.launches == 2
    ranges = [f"{NAME}/after", f"{NAME}/before"]
    recording = record.Recording(NAME, {LATENCY: latencies()}, ("before", "after"))
    record._write(recording, ranges, before, tmp_path, RUN)

    written = {file.name for file in older.iterdir()}
    assert written == {"before.ncu-repz", "after.ncu-repz", LATENCY, "pair.yaml", "manifest.json"}
    (kept,) = profile(older / "before.ncu-repz").summary.launches
    assert kept.name == profile(pair_report(NAME, "before")).summary.launches[1].name
    assert (
        timed(older / LATENCY)["before"].summary
        == timed(pair_folder(NAME) / LATENCY)["before"].summary
    )

    manifest = json.loads((older / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["schema"] == record.SCHEMA
    assert manifest["ncu"] == "2025.3.1"
    assert manifest["gpu"] == "NVIDIA H200"
    assert manifest["files"]["before.ncu-repz"]["launches"] == 1
    assert all(entry["sha256"] == digest(older / name) for name, entry in manifest["files"].items())


def test_the_whole_report_lies_aside_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with record._aside(Path("reports")) as aside:
        assert aside == Path("reports/.recording")
        (aside / "all.ncu-rep").write_text("")
    assert not aside.exists()


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    aside = record._aside(tmp_path / "file")
    with pytest.raises(EnvironmentProblem, match="name another with --out"):
        aside.__enter__()


@pytest.mark.parametrize(
    ("gpu", "slug"), [("NVIDIA H200", "h200"), ("NVIDIA GeForce RTX 4090", "geforce_rtx_4090")]
)
def test_a_folder_is_named_for_the_gpu(gpu: str, slug: str) -> None:
    assert record._slug(gpu) == slug


def test_what_there_is_not_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["record", "none_such", NAME])
    with pytest.raises(SystemExit) as error:
        record.main()
    assert error.value.code == 2
    assert "there is no none_such" in capsys.readouterr().err


def test_a_machine_without_ncu_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["record", NAME])
    monkeypatch.setattr(record, "find", lambda _: None)
    assert record.main() == EnvironmentProblem.exit_code
    assert capsys.readouterr().err == "profkit: ncu was not found; see `profkit doctor`\n"


def test_what_failed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["record", NAME, "ladder"])
    monkeypatch.setattr(record, "record", lambda *_names, **_options: ("ladder",))
    assert record.main() == 6
    assert capsys.readouterr().err == "profkit: not recorded: ladder\n"
