"""Files that are replaced whole: content, permissions, and what a failure leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.atomic_file import replacement, write_atomic


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_file_is_written_with_the_permissions_of_a_new_one(tmp_path: Path) -> None:
    write_atomic(tmp_path / "text", "half a µs\n")
    write_atomic(tmp_path / "bytes", b"\x7fELF")
    assert (tmp_path / "text").read_text("utf-8") == "half a µs\n"
    assert (tmp_path / "bytes").read_bytes() == b"\x7fELF"
    assert (tmp_path / "text").stat().st_mode & 0o777 == 0o640
    assert {file.name for file in tmp_path.iterdir()} == {"text", "bytes"}


@pytest.mark.usefixtures("umask")
def test_a_replacement_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacement(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted() -> None:
        with replacement(path) as temporary:
            temporary.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_s_place_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomic(tmp_path / "folder", "text")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "absent" / "file", "text")


def test_a_link_gives_way_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "aim").write_text("aim")
    (tmp_path / "link").symlink_to("aim")
    write_atomic(tmp_path / "link", "file")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "aim").read_text() == "aim"
