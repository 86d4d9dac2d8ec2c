"""An audit's file, `profkit.audit/1`, and its document."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from profkit.audit.audit import Audit, Outcome
from profkit.audit.check import Contradiction
from profkit.audit.claims import Claims
from profkit.audit.phrases import VOCABULARY
from profkit.core.typed_file import Count, File, Model
from profkit.core.version import __version__
from profkit.ui import document as doc
from profkit.ui.text import plural

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


def audit_result(claims: Claims, audit: Audit) -> AuditFile:
    """The audit as its file."""
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


def _rule(finding: Contradiction) -> str:
    return f"check: {VOCABULARY.checks.get(finding.rule, finding.rule.replace('_', ' '))}"


def _item(finding: Contradiction, *, doubt: bool) -> doc.Item:
    """A finding with the implied value, the likely cause, and the expected value."""
    mark, style = ("?", doc.Style.warning) if doubt else ("✗", doc.Style.bad)
    rows = (
        doc.Row("implied", finding.follows),
        doc.Row("likely cause", finding.cause or ""),
        doc.Row("expected", finding.should_be or ""),
    )
    head = doc.in_style(f"{mark} {finding.claimed}   {_rule(finding)}", style)
    return doc.Item(head, tuple(row for row in rows if row.value))


def audit_document(file: AuditFile, audit: Audit) -> doc.Document:
    """The contradictions by claim, and what was not checked."""
    blocks: list[doc.Block] = [
        doc.Heading(file.file, 1),
        doc.Lines(
            (
                doc.in_style(
                    _summary(file), doc.Style.bad if file.contradictions else doc.Style.good
                ),
            )
        ),
    ]
    for outcome in audit.outcomes:
        if outcome.findings:
            items = tuple(_item(finding, doubt=doubt) for finding, doubt in outcome.findings)
            blocks += [doc.Heading(_title(outcome)), doc.Items(items)]
    if file.unchecked:
        rows = tuple(doc.Row(left.where, left.why) for left in file.unchecked[:_SHOWN])
        blocks += [doc.Heading("Not checked"), doc.Facts("", rows)]
        if len(file.unchecked) > _SHOWN:
            more = f"{len(file.unchecked) - _SHOWN:,} more: --format json lists all"
            blocks.append(doc.Lines((doc.quiet(more),)))
    return doc.Document(f"Audit of {Path(file.file).name}", tuple(blocks))
