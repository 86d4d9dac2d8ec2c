"""Names that are close to a wrong one."""

from __future__ import annotations

import pytest

from profkit.core.suggestion import did_you_mean

KNOWN = ("dram_bytes", "dram_busy", "l2_bytes")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("dram_byte", "did you mean dram_bytes?"),
        ("warps", "see the list"),
        ("", "see the list"),
    ],
)
def test_the_closest_name_is_meant(name: str, remedy: str) -> None:
    assert did_you_mean(name, KNOWN, "see the list") == remedy
    assert did_you_mean(name, (), "see the list") == "see the list"


def test_several_may_be_meant_and_be_spelled_otherwise() -> None:
    assert did_you_mean("dram_byts", KNOWN, most=2) == "did you mean dram_bytes or dram_busy?"
    assert did_you_mean("l2_byte", KNOWN, spelled="before.{}".format) == (
        "did you mean before.l2_bytes?"
    )


def test_how_alike_names_are_is_chosen() -> None:
    assert did_you_mean("byt", KNOWN, alike=0.9) == ""
    assert did_you_mean("byt", KNOWN, alike=0.3) != ""
