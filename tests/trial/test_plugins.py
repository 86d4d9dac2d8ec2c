"""Switches of other packages."""

from pathlib import Path

import pytest

from profkit.trial.switch import GROUP, all_switches

PLUGIN = """
from profkit.trial.switch import Switch
sound = Switch(name="sound", what="x", needs=(), changes="nothing", keep="x")
wrong = Switch(name="wrong", what="x", needs=(), changes="everything", keep="x")
other = 3
"""


def test_a_broken_package_is_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "its_switches.py").write_text(PLUGIN)
    (tmp_path / "its_broken.py").write_text("raise ImportError('no\\nlibrary')")
    information = tmp_path / "plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    names = ("its_switches:sound", "its_switches:wrong", "its_switches:other", "its_broken:lost")
    entries = "".join(f"{name.partition(':')[2]} = {name}\n" for name in names)
    (information / "entry_points.txt").write_text(f"[{GROUP}]\n{entries}")
    shipped = [switch.name for switch in all_switches()]
    monkeypatch.syspath_prepend(tmp_path)
    said: list[str] = []
    assert {each.name for each in all_switches(said.append)} == {*shipped, "sound"}
    assert [line.partition(":")[0] for line in said] == ["plugin"] * 3
    assert any("switch lost is left out: ImportError: no library" in line for line in said)
    assert any("everything" in line for line in said)
