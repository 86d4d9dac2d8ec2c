"""Copies of a folder with what is no file in it."""

import os
import socket
from pathlib import Path

import pytest

from profkit.capture.copies import check_size, copy_folder
from profkit.core.errors import EnvironmentProblem


def test_links_of_a_copy_lead_where_those_of_the_folder_do(tmp_path: Path) -> None:
    folder, copy = tmp_path / "deep" / "folder", tmp_path / "copies" / "more" / "folder"
    (folder / "runs").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large").write_text("data")
    (folder / "runs" / "log").write_text("original")
    (folder / "data").symlink_to("../../data")
    (folder / "runs" / "near").symlink_to("log")
    (folder / "latest").symlink_to(folder / "runs" / "log")
    (folder / "gone").symlink_to("nowhere")
    check_size(folder)
    copy_folder(folder, copy)
    assert (copy / "data" / "large").read_text() == "data"
    for name in ("latest", "runs/near"):
        (copy / name).write_text("new")
    assert (folder / "runs" / "log").read_text() == "original"
    assert (copy / "gone").is_symlink()


def test_pipes_and_sockets_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    os.mkfifo("folder/pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("folder/socket")
        check_size(tmp_path / "folder")
        copy_folder(tmp_path / "folder", tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["file"]


def test_what_cannot_be_copied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", source)

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    monkeypatch.setattr("shutil.copystat", full)
    with pytest.raises(EnvironmentProblem, match=r"folder/file: can't be copied: .*No space left"):
        copy_folder(tmp_path / "folder", tmp_path / "copy")
