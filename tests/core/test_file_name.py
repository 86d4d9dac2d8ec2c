"""File names of others' texts, and the folder of what is kept of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import EnvironmentProblem
from profkit.core.file_name import file_name
from profkit.core.state_folder import state_folder, write_state


def test_other_characters_become_one() -> None:
    assert file_name("NVIDIA H200 / 1g.18gb") == "NVIDIA_H200_1g_18gb"
    assert file_name("a..b_c", "._") == "a..b_c"
    assert file_name("../µ x", ".", "-") == "..-x"
    assert file_name("GPU-1234]^") == "GPU-1234_"


def test_state_lies_in_the_home_or_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder("floors") == tmp_path / "profkit" / "floors"
    write_state(state_folder("floors") / "a.json", "{}\n")
    assert (tmp_path / "profkit" / "floors" / "a.json").read_text() == "{}\n"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_folder("floors") == Path.home() / ".local" / "state" / "profkit" / "floors"


def test_state_that_cant_be_written_is_the_environment_s_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match=r"can't be written .*; set XDG_STATE_HOME"):
        write_state(state_folder("floors") / "a.json", "{}\n")
