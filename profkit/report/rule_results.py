"""Results of ncu's own rules.

Field numbers: NVIDIA, Nsight Compute Customization Guide, "File Format" (RuleResult).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from profkit.report import wire
from profkit.report.paths import without_homes

_RULE, _NAME, _BODY, _SECTION = 1, 2, 3, 4  # of a result
_ITEMS = 1  # of its body
_MESSAGE, _SPEEDUP = 1, 10  # of an item
_TEXT, _KIND, _TITLE = 1, 2, 4  # of a message
_SCOPE, _ESTIMATE = 1, 2  # of a speedup
_KINDS = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
_SCOPES = {1: "local", 2: "global"}
_MARK = re.compile(r"@(?P<kind>[a-z]+):(?P<first>[^:@]*):(?P<second>[^@]*)@")


@dataclass(frozen=True)
class RuleResult:
    """The result of one of ncu's rules for a launch.

    `kind` is "none", "ok", "optimization", "warning" or "error". `speedup` is ncu's own estimate as
    a share of the run time (0.3 = 30% less), `scope` "global" (run time of the kernel), "local"
    (efficiency of one unit in isolation, not time) or "" where there is none.
    """

    rule: str
    section: str
    kind: str
    title: str
    message: str
    speedup: float | None
    scope: str


def rule_results(recorded: Iterable[bytes]) -> tuple[RuleResult, ...]:
    """The results of messages, one for each of their items; undecodable ones are left out."""
    return tuple(result for data in recorded for result in _results(data))


def _results(data: bytes) -> Iterator[RuleResult]:
    try:
        result = wire.decode(data)
    except ValueError:
        return
    for body in wire.messages(result, _BODY):
        for item in wire.messages(body, _ITEMS):
            yield _result(result, item)


def _result(result: wire.Message, item: wire.Message) -> RuleResult:
    message = (wire.messages(item, _MESSAGE) or [{}])[-1]
    speedup = (wire.messages(item, _SPEEDUP) or [{}])[-1]
    estimates = [value for value in speedup.get(_ESTIMATE, ()) if isinstance(value, bytes)]
    return RuleResult(
        rule=wire.text(result, _RULE),
        section=wire.text(result, _SECTION),
        kind=_KINDS.get(wire.number(message, _KIND), "none"),
        title=without_homes(wire.text(message, _TITLE) or wire.text(result, _NAME)),
        message=plain_text(wire.text(message, _TEXT)),
        speedup=wire.floating(estimates[-1], 0, len(estimates[-1])) / 100 if estimates else None,
        scope=_SCOPES.get(wire.number(speedup, _SCOPE), ""),
    )


def plain_text(message: str) -> str:
    """A message without marks of links, of which ncu shows the address or the text."""
    text = _MARK.sub(lambda mark: mark["first" if mark["kind"] == "url" else "second"], message)
    return without_homes(text.strip())
