"""An audit for a terminal, as Markdown and as `profkit.audit/1` JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta
from rich.console import Group, RenderableType
from rich.text import Text

from profkit.audit.audit import Audit, Outcome
from profkit.audit.claims import Claims
from profkit.audit.contradiction import Contradiction
from profkit.core.typed_file import Count, File, Model, encode
from profkit.core.version import __version__
from profkit.ui.markdown import escape
from profkit.ui.terminal import facts, rendered
from profkit.ui.text import literal, plural
from profkit.ui.view import Panel, Row

_SHOWN = 20  # chosen: half a screen


class Unchecked(Model, frozen=True):
    """A place in the file with something that was not checked."""

    where: str
    why: str


class AuditFile(File, frozen=True, tag="profkit.audit/1"):
    """Claimed figures checked against each other and datasheets."""

    profkit: str
    file: str
    claims: Annotated[int, Meta(ge=1)]
    checked: Annotated[int, Meta(ge=0, description="Claims that a rule applied to.")]
    checks: Count
    contradictions: tuple[Contradiction, ...]
    doubts: Annotated[
        tuple[Contradiction, ...],
        Meta(description="May be right, but misleading; does not change the exit code."),
    ]
    unchecked: tuple[Unchecked, ...]


def audit_text(claims: Claims, audit: Audit, format: str, *, to_file: bool) -> str:
    """The audit in a format: `terminal`, `markdown` or `json`."""
    file = _file(claims, audit)
    if format == "json":
        return encode(file)
    if format == "markdown":
        return _markdown(file, audit)
    return rendered(_view(file, audit), to_file=to_file)


def _file(claims: Claims, audit: Audit) -> AuditFile:
    places = [(outcome.claim.where, why) for outcome in audit.outcomes for why in outcome.unchecked]
    places += [(where, f"{value}: unknown quantity") for where, value in claims.unread.items()]
    checks = sum(len(outcome.checks) for outcome in audit.outcomes)
    return AuditFile(
        __version__, claims.path, len(audit.outcomes), audit.checked, checks,
        audit.contradictions, audit.doubts, tuple(Unchecked(*place) for place in places),
    )  # fmt: skip


def _summary(file: AuditFile) -> str:
    """The numbers of contradictions, checks and claims."""
    parts = [plural(len(file.contradictions), "contradiction")]
    if file.doubts:
        parts.append(plural(len(file.doubts), "doubtful claim"))
    looked = f"{plural(file.checks, 'check')} of {plural(file.checked, 'claim')}"
    summary = f"{', '.join(parts)} in {looked}"
    places = len({place.where for place in file.unchecked})
    return f"{summary}; unchecked numbers in {plural(places, 'place')}" if places else summary


def _title(outcome: Outcome) -> str:
    """Where a claim is and its sentence, or what a row of numbers is of."""
    claim = outcome.claim
    shape = [f"{letter}={size}" for letter, size in zip("BHSD", claim.shape, strict=True) if size]
    row = " ".join([*claim.gpus[:1], *filter(None, [claim.dtype]), *shape])
    return f"{claim.where}  {claim.text or row}".strip()


_CHECKS = {
    "flop_of_shape": "FLOP of the shape",
    "bytes_of_shape": "bytes of the shape",
    "intensity": "FLOP over bytes",
    "share_of_peak": "rate over peak",
    "peak": "datasheet peak",
    "above_peak": "limit by the peak",
    "ridge": "compute peak over memory bandwidth",
    "bound": "intensity against the ridge point",
    "interval": "value within its interval",
    "interval_end": "end of the interval",
    "overlap": "overlap of intervals",
    "timer_tick": "timer resolution",
    "speed_up": "time before over time after",
    "advantage": "ratio of peaks over ratio of times",
    "memory": "memory type of the GPU",
    "grid": "grid dimensions",
    "residency": "blocks per SM",
    "change": "change between two values",
    "part": "part over whole",
    "product": "product of the factors",
    "tokens": "token rate and cost per token",
    "cycles": "time x clock",
}


def _rule(finding: Contradiction) -> str:
    return f"check: {_CHECKS.get(finding.rule, finding.rule.replace('_', ' '))}"


def _rows(finding: Contradiction) -> list[Row]:
    """The implied value, the likely cause, and the expected value."""
    rows = [Row("implied", finding.follows), Row("likely cause", finding.cause or "")]
    return [row for row in (*rows, Row("expected", finding.should_be)) if row.value]


def _view(file: AuditFile, audit: Audit) -> RenderableType:
    color = "bold red" if file.contradictions else "bold green"
    parts: list[RenderableType] = [
        Text(literal(file.file), "bold"), Text(_summary(file), color),
    ]  # fmt: skip
    for outcome in audit.outcomes:
        if outcome.findings:
            parts += [Text(), Text(literal(_title(outcome)), "bold")]
        for finding, doubt in outcome.findings:
            mark, style = ("?", "yellow") if doubt else ("✗", "red")
            parts.append(Text(f"{mark} {literal(finding.claimed)}   {_rule(finding)}", style))
            rows = (Row(f"  {row.label}", literal(row.value)) for row in _rows(finding))
            parts.append(facts(Panel("", tuple(rows))))
    if file.unchecked:
        rows = (Row(literal(left.where), literal(left.why)) for left in file.unchecked[:_SHOWN])
        parts += [Text(), Text("Not checked", "bold"), facts(Panel("", tuple(rows)))]
        if len(file.unchecked) > _SHOWN:
            more = f"{len(file.unchecked) - _SHOWN:,} more: --format json lists all"
            parts.append(Text(more, "dim"))
    return Group(*parts)


def _markdown(file: AuditFile, audit: Audit) -> str:
    lines = [f"# Audit of {escape(Path(file.file).name)}", "", f"{_summary(file)}."]
    for outcome in audit.outcomes:
        if outcome.findings:
            lines += ["", f"## {escape(_title(outcome))}", ""]
        for finding, doubt in outcome.findings:
            kind = "doubtful" if doubt else "wrong"
            lines.append(f"- **{escape(finding.claimed)}** ({_rule(finding)}, {kind})")
            lines += [f"  - {row.label}: {escape(row.value)}" for row in _rows(finding)]
    if file.unchecked:
        lines += ["", "## Not checked", ""]
        lines += [f"- {escape(left.where)}: {escape(left.why)}" for left in file.unchecked]
    return "\n".join(lines) + "\n"
