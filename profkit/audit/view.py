"""An audit for a terminal, as Markdown and as `profkit.audit/1` JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.audit.claims import SHAPE, Claim, Claims
from profkit.audit.contradiction import Amount, Contradiction, Words
from profkit.core.json_text import nullable
from profkit.core.version import __version__
from profkit.ui.markdown import escape
from profkit.ui.terminal import facts, rendered
from profkit.ui.text import literal, number, plural
from profkit.ui.view import Panel, Row

if TYPE_CHECKING:
    from profkit.audit.audit import Audit, Outcome

SCHEMA = "profkit.audit/1"
_SHOWN = 20


def audit_text(claims: Claims, found: Audit, format: str, *, to_file: bool) -> str:
    """The audit in a format: `terminal`, `markdown` or `json`."""
    if format == "json":
        return _json(claims, found)
    if format == "markdown":
        return _markdown(claims, found)
    return rendered(_view(claims, found), to_file=to_file)


def told(words: Words) -> str:
    """Words with their amounts in them."""
    return "".join(_amount(part) if isinstance(part, Amount) else part for part in words)


def _amount(amount: Amount) -> str:
    return f"{amount.value:.3g}x" if amount.unit == "x" else number(amount.value, amount.unit)


def summary(claims: Claims, found: Audit) -> str:
    """How much was found, and how much was looked at."""
    checked = sum(1 for outcome in found.outcomes if outcome.checks)
    checks = sum(len(outcome.checks) for outcome in found.outcomes)
    parts = [f"{plural(len(found.contradictions), 'contradiction')}"]
    if found.doubts:
        parts.append(plural(len(found.doubts), "doubt"))
    left = len(_unchecked(claims, found))
    looked = f"{plural(checks, 'check')} of {plural(checked, 'claim')}"
    return f"{', '.join(parts)} in {looked}; {plural(left, 'place')} not checked"


def _view(claims: Claims, found: Audit) -> RenderableType:
    colour = "bold red" if found.contradictions else "bold green"
    parts: list[RenderableType] = [
        Text(literal(claims.path), "bold"), Text(summary(claims, found), colour),
    ]  # fmt: skip
    for outcome in found.outcomes:
        if outcome.found:
            parts += [Text(), Text(literal(_title(outcome)), "bold")]
            parts += [part for one in outcome.found for part in _finding(one)]
    parts += _left(claims, found)
    return Group(*parts)


def _title(outcome: Outcome) -> str:
    claim = outcome.claim
    return f"{claim.where}  {claim.text or _row(claim)}".strip()


def _row(claim: Claim) -> str:
    """What a row of numbers is of."""
    letters = zip("BHSD", SHAPE, strict=True)
    shape = [f"{letter}={value}" for letter, name in letters if (value := getattr(claim, name))]
    return " ".join([*claim.gpus[:1], *filter(None, [claim.dtype]), *shape])


def _finding(one: Contradiction) -> Iterator[RenderableType]:
    mark = "?" if one.doubt else "✗"
    yield Text(f"{mark} {literal(one.claimed)}   {one.rule}", "yellow" if one.doubt else "red")
    rows = [Row("  follows", told(one.follows))]
    if one.cause:
        rows.append(Row("  likely", told(one.cause)))
    rows.append(Row("  should be", told(one.should_be)))
    yield facts(Panel("", tuple(Row(row.label, literal(row.value)) for row in rows)))


def _left(claims: Claims, found: Audit) -> list[RenderableType]:
    left = _unchecked(claims, found)
    if not left:
        return []
    rows = tuple(Row(literal(where), literal(why)) for where, why in left[:_SHOWN])
    parts: list[RenderableType] = [Text(), Text("Not checked", "bold")]
    parts.append(facts(Panel("", rows)))
    if len(left) > _SHOWN:
        parts.append(Text(f"{len(left) - _SHOWN:,} more: --format json has all", "dim"))
    return parts


def _unchecked(claims: Claims, found: Audit) -> list[tuple[str, str]]:
    """Every place of which something was not checked, with what and why."""
    parts = [(outcome.claim.where, why) for outcome in found.outcomes for why in outcome.unchecked]
    return parts + [(where, f"{value}: no known figure") for where, value in claims.unread.items()]


def _markdown(claims: Claims, found: Audit) -> str:
    lines = [f"# Audit of {escape(Path(claims.path).name)}", "", f"{summary(claims, found)}."]
    for outcome in found.outcomes:
        if not outcome.found:
            continue
        lines += ["", f"## {escape(_title(outcome))}", ""]
        for one in outcome.found:
            kind = "doubtful" if one.doubt else "wrong"
            lines.append(f"- **{escape(one.claimed)}** ({one.rule}, {kind})")
            lines.append(f"  - follows: {escape(told(one.follows))}")
            if one.cause:
                lines.append(f"  - likely: {escape(told(one.cause))}")
            lines.append(f"  - should be: {escape(told(one.should_be))}")
    left = _unchecked(claims, found)
    if left:
        lines += ["", "## Not checked", ""]
        lines += [f"- {escape(where)}: {escape(why)}" for where, why in left]
    return "\n".join(lines) + "\n"


def _json(claims: Claims, found: Audit) -> str:
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "file": claims.path,
        "claims": len(found.outcomes),
        "checked": sum(1 for outcome in found.outcomes if outcome.checks),
        "checks": sum(len(outcome.checks) for outcome in found.outcomes),
        "contradictions": [_contradiction(one) for one in found.contradictions],
        "doubts": [_contradiction(one) for one in found.doubts],
        "unchecked": [{"where": where, "why": why} for where, why in _unchecked(claims, found)],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _contradiction(one: Contradiction) -> dict[str, Any]:
    return {
        "where": one.where,
        "text": one.text,
        "rule": one.rule.replace(" ", "_").replace("-", "_"),
        "field": one.field,
        "claimed": one.claimed,
        "follows": told(one.follows),
        "cause": told(one.cause) or None,
        "should_be": told(one.should_be),
        "value": nullable(one.value),
        "expected": nullable(one.expected),
        "unit": one.unit or None,
    }
