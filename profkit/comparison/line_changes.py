"""Where in the source time went and goes: lines of two versions, aligned by their text."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from msgspec import field

from profkit.core.grouping import grouped
from profkit.core.typed_file import Model
from profkit.report.source_lines import LineCost


class LineChange(Model, frozen=True):
    """A line of both versions, or of one, by its file's name; seconds of a launch."""

    file: str
    line_before: int | None
    line_after: int | None
    text: str
    before: float = field(name="before_s")
    after: float = field(name="after_s")

    @property
    def change(self) -> float:
        return self.after - self.before


def line_changes(before: Sequence[LineCost], after: Sequence[LineCost]) -> tuple[LineChange, ...]:
    """All lines with samples on either side, the largest change first; their changes add up.

    Files are taken as one by name, or as the only ones left; lines as one where `difflib` aligns
    their texts, blanks apart: what was rewritten is a line gone and a line new. Lines without a
    known text are aligned by nothing, each is its own.
    """
    changes: list[LineChange] = []
    files, files_after = _by_name(before), _by_name(after)
    for name, name_after in _paired(files, files_after):
        changes += _of_file(files.get(name, ()), files_after.get(name_after, ()))
    return tuple(sorted(changes, key=_rank))


def _rank(change: LineChange) -> tuple[float, str, list[int]]:
    lines = sorted((change.line_before or 0, change.line_after or 0))
    return -abs(change.change), change.file, lines


def _paired(
    files: Mapping[str, Sequence[LineCost]], files_after: Mapping[str, Sequence[LineCost]]
) -> list[tuple[str, str]]:
    """Files of one name; the only ones left of both sides too; and each other one with none."""
    both = [(name, name) for name in files if name in files_after]
    left = [name for name in files if name not in files_after]
    right = [name for name in files_after if name not in files]
    if len(left) == len(right) == 1:
        return [*both, (left[0], right[0])]
    return [*both, *((name, "") for name in left), *(("", name) for name in right)]


def _by_name(costs: Sequence[LineCost]) -> Mapping[str, Sequence[LineCost]]:
    ordered = sorted(costs, key=lambda cost: cost.line)
    return grouped((PurePath(cost.file.replace("\\", "/")).stem, cost) for cost in ordered)


def _of_file(before: Sequence[LineCost], after: Sequence[LineCost]) -> list[LineChange]:
    matched = _matched(before, after)
    paired = set(matched.values())
    partners = {index: after[other] for index, other in matched.items()}
    alone = [cost for index, cost in enumerate(after) if index not in paired]
    changes = [_line(cost, partners.get(index)) for index, cost in enumerate(before)]
    return changes + [_line(None, cost) for cost in alone]


def _matched(before: Sequence[LineCost], after: Sequence[LineCost]) -> dict[int, int]:
    """Positions of the same line. `difflib` decides by order between equals: it is given one."""
    texts, texts_after = (
        [" ".join(cost.text.split()) for cost in side] for side in (before, after)
    )
    if texts_after < texts:
        return {index: other for other, index in _matched(after, before).items()}
    keys = [text or f"0:{index}" for index, text in enumerate(texts)]
    keys_after = [text or f"1:{index}" for index, text in enumerate(texts_after)]
    matcher = difflib.SequenceMatcher(None, keys, keys_after, autojunk=False)
    return {
        block.a + step: block.b + step
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }


def _line(before: LineCost | None, after: LineCost | None) -> LineChange:
    known = after or before
    assert known
    return LineChange(
        PurePath(known.file).name,
        before.line if before else None,
        after.line if after else None,
        known.text,
        before.seconds if before else 0.0,
        after.seconds if after else 0.0,
    )
