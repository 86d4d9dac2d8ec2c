"""The doctor's checks: terminal and `profkit.doctor/1` JSON."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.capture.doctor import FAILS, OK, WARNING, Check, Diagnosis
from profkit.core.projection import project
from profkit.core.typed_file import File, encode
from profkit.ui.text import literal

_STYLES = {OK: "green", WARNING: "yellow", FAILS: "red"}


class DoctorFile(File, frozen=True, kw_only=True, tag="profkit.doctor/1"):
    """Whether a machine can profile, null where that, or the driver's answer, can't be told."""

    can_profile: bool | None
    has_gpu: bool | None
    checks: tuple[Check, ...]


def doctor_json(diagnosis: Diagnosis) -> str:
    """The checks as a file."""
    return encode(project(diagnosis, DoctorFile), dense=False)


def doctor_view(diagnosis: Diagnosis) -> RenderableType:
    """A line a check: status, what was found, and below a bad one its cost and remedy."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in diagnosis.checks:
        status = Text(check.status, _STYLES.get(check.status, "dim"))
        table.add_row(status, Text(check.name), Text(literal(check.found)))
        advice = "; ".join(filter(None, (check.costs, check.remedy)))
        if check.status != OK and advice:
            table.add_row(Text(), Text(), Text(advice, "dim"))
    return Group(table, Text(), Text(_verdict(diagnosis), "bold"))


def _verdict(diagnosis: Diagnosis) -> str:
    if diagnosis.can_profile:
        return "This machine can profile: profkit profile targets/sdpa_s512.py"
    if diagnosis.has_gpu or (diagnosis.has_gpu is None and diagnosis.can_profile is False):
        return "This machine can't profile yet: see what fails. Reading reports works."
    if diagnosis.has_gpu is None:
        return "Can't tell whether this machine can profile: see GPU above. Reading reports works."
    return "No GPU here. What works: profkit analyze, profkit metrics, on reports from elsewhere."
