"""What an experiment with switches gave: of a finding that they are a fix of, and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from profkit.core.typed_file import Amount, Model
from profkit.ui.document import Block, Code, Lines, Style, Table, in_style
from profkit.ui.text import literal, plural

TriedVerdict = Literal[
    "proven", "not verified", "undecided", "no gain", "slower", "changes results", "failed"
]
_ORDER: Sequence[TriedVerdict] = get_args(TriedVerdict)
_IN_A_LINE: Sequence[TriedVerdict] = ("no gain", "slower", "undecided")
_IN_VAIN = {"no gain", "slower", "changes results"}


class Tried(Model, frozen=True, kw_only=True):
    """What `switches` of `profkit try` gave a kernel or a program's step: `speedup` is the factor
    of its time, with the interval where there is one; `reason` is about the verdict, `keep` what to
    write to keep them."""

    verdict: TriedVerdict
    switches: tuple[str, ...]
    speedup: Amount | None = None
    low: Amount | None = None
    high: Amount | None = None
    reason: str = ""
    keep: tuple[str, ...] = ()

    @property
    def is_proven(self) -> bool:
        return self.verdict == "proven"

    @property
    def is_in_vain(self) -> bool:
        """Whether it was measured to give nothing, or a wrong result."""
        return self.verdict in _IN_VAIN

    @property
    def is_decided(self) -> bool:
        """Whether trying it again tells nothing new."""
        return self.verdict not in {"not verified", "undecided"}

    @property
    def gain(self) -> str:
        """`1.41x [1.40, 1.42]`, as far as it is known; "" with other results."""
        if self.speedup is None or self.verdict == "changes results":
            return ""
        interval = f" [{self.low:.2f}, {self.high:.2f}]" if self.low and self.high else ""
        return f"{self.speedup:.2f}x{interval}"

    @property
    def names(self) -> str:
        return " + ".join(self.switches)

    @property
    def headline(self) -> str:
        """`proven 1.41x [1.40, 1.42] with tf32`, `tried: no gain`; "" where the estimate holds."""
        if self.is_proven:
            return f"proven {self.gain} with {self.names}"
        return f"tried: {self.verdict}" if self.is_in_vain else ""

    @property
    def remark(self) -> str:
        """What to write to keep what is proven, and the reason."""
        reason = literal(self.reason)
        if not self.is_proven:
            return reason
        return " ⏎ ".join(self.keep) + (f" ({reason})" if reason else "")

    @property
    def step(self) -> str:
        """What to do about a cause that it was tried on: what to write, or what is known now."""
        if self.is_proven:
            return f"Proven, to keep it: {self.remark}"
        gain = f" {self.gain}" if self.gain and self.verdict != "failed" else ""
        return (
            f"Tried {self.names}:{gain} {self.verdict}{f' ({self.remark})' if self.remark else ''}"
        )


def best_first(rows: Iterable[Tried]) -> list[Tried]:
    """What is proven, the fastest first, then what is open, then what gave nothing or failed."""
    return sorted(rows, key=lambda row: (_ORDER.index(row.verdict), -(row.speedup or 0.0)))


def tried_table(rows: Sequence[Tried], subject: str) -> tuple[Block, ...]:
    """What was tried on a program or kernel, and below it what to write to keep what is proven."""
    if not rows:
        return ()
    shown = [row for row in best_first(rows) if row.verdict not in _IN_A_LINE]
    note = "; ".join(
        f"{verdict}: {', '.join(row.names for row in rows if row.verdict == verdict)}"
        for verdict in _IN_A_LINE
        if any(row.verdict == verdict for row in rows)
    )
    cells = tuple(
        (
            row.names,
            in_style(row.verdict, Style.good if row.is_proven else Style.plain),
            row.gain,
            literal(row.reason),
        )
        for row in shown
    )
    title = f"Tried on {subject}: {plural(sum(row.is_proven for row in rows), 'proven gain')}"
    columns = ("Switches", "Verdict", "Speedup", "Remark")
    table = Table(title, columns, cells, note) if cells else Lines((f"{title}; {note}",))
    kept = {line: row for row in reversed(shown) if row.is_proven for line in row.keep}
    first = [row for row in shown if row in kept.values()]  # that have a line of their own
    return (table, *(Code("\n".join(["# " + row.names, *row.keep])) for row in first))
