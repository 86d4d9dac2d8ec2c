"""The head of the page: what limits the report, what to do next, and the commands for it."""

import shlex
from collections.abc import Callable, Iterator

from msgspec import Struct

from profkit.report.session import Session
from profkit.report.summary import Group
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist
from profkit.rules.engine import AT_THE_ROOF
from profkit.rules.finding import DemonstratedSpeedup, Finding, FindingGroup
from profkit.ui.text import literal, number, plural

Name = Callable[[Group | None], str]


class Step(Struct, frozen=True):
    """A labeled line: a text, a command to type, and the anchor of its details ("" for none)."""

    label: str
    text: str
    command: str = ""
    anchor: str = ""


class Lead(Struct, frozen=True):
    """`estimate` is a sentence about the `title`; `kernel` is "" where it is not about a kernel."""

    title: str
    kernel: str
    estimate: str
    steps: tuple[Step, ...]


def lead(checklist: Checklist, session: Session, file: str, name: Name) -> Lead:
    """The head of a report's page; `file` is the report in commands, `name` shortens kernels.

    A variant that is demonstrably faster than any estimate comes before the first finding.
    """
    item, proof = _first(checklist), checklist.headline
    steps = tuple(_steps(checklist, session, file, name))
    if proof:
        return Lead(_demonstrated(proof), "", words.proof_source(proof), steps)
    if item:
        kernel = name(item.best.group) if item.best.group else ""
        return Lead(item.title, kernel, _estimate(item), steps)
    title = "Inconclusive" if checklist.inconclusive else "No findings"
    return Lead(title, "", words.summary(checklist), steps)


def anchor(item: Finding | FindingGroup) -> str:
    """The id of a finding's box in the checklist, or of a list of kernels beside the boxes."""
    if item.rule.category == AT_THE_ROOF:
        return "at-the-roof"
    if item.rule.divides:
        return "divided"
    return f"item-{item.rank or item.rule.name}"


def _first(checklist: Checklist) -> FindingGroup | None:
    """The item to begin with: one worth acting on, else that of kernels at the roof."""
    roofs = (item for item in checklist.rule_items if item.rule.category == AT_THE_ROOF)
    return next(
        (item for items in (checklist.major, roofs, checklist.minor) for item in items), None
    )


def _demonstrated(proof: DemonstratedSpeedup) -> str:
    best = f"{literal(proof.best)}, {number(proof.best_seconds, 's')}"
    factor = words.factor(proof.speedup)
    return f"{factor} faster variant (GPU time) of the same work exists: {best}"


def _estimate(item: FindingGroup) -> str:
    best = item.best
    if best.tried and best.tried.headline:
        return best.tried.headline
    parts = f"estimated speedup {words.estimate(best)}", words.headroom(best.headroom)
    return "; ".join(filter(None, parts))


def _steps(checklist: Checklist, session: Session, file: str, name: Name) -> Iterator[Step]:
    item, proof = _first(checklist), checklist.headline
    report = shlex.quote(file)
    details = anchor(item) if item else ""
    if proof:
        use = f"Use {literal(proof.best)} in place of {literal(proof.variant)}. How to select it:"
        yield Step("Next step", use, "profkit optimize TARGET")
    if item and proof:
        subject = f" in {name(item.best.group)}" if item.best.group else ""
        text = f"{item.title}{subject}: {_estimate(item)}."
        yield Step("First finding", text, anchor=details)
    if item and item.best.actions:
        action = item.best.actions[0]
        yield Step("Action", action) if proof else Step("Next step", action, anchor=details)
    if item:
        yield Step("After the fix", "Record again and compare:", f"profkit diff {report} AFTER")
    elif checklist.inconclusive:
        label = "Next step"
        if "full" not in session.options.get("set", "").split(","):
            yield Step(label, "Record again with all sections:", "ncu --set full")
            label = "Missing data"
        yield Step(label, "List what each rule lacks:", f"profkit checklist {report}")
    elif not proof:
        yield Step("Next step", "Find the hottest lines:", f"profkit source {report}")


def kernel_count(item: FindingGroup) -> str:
    """How many kernels an item concerns, "" for a timeline."""
    kernels = {finding.group.typical.index for finding in item.findings if finding.group}
    return plural(len(kernels), "kernel") if kernels else ""
