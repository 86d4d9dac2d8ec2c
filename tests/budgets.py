"""What `make lint` checks of the size of the house: `python -m tests.budgets`.

The budgets stand in pyproject.toml, [tool.profkit.budgets]: code lines of each room, mappings whose
values have no type, lines of the README, and words of all pages.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.conftest import ROOT

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_UNTYPED = re.compile(r"(?:Mapping|dict)\[str, Any\]")
LARGEST_ROOM = 0.10
"""Of all code lines: a larger room holds more than one idea. The aim is a tenth."""


def code_lines(text: str) -> int:
    """Lines that are no blanks, comments or docstrings."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in docs
        for number, line in enumerate(text.splitlines(), 1)
    )


def measured() -> Mapping[str, int]:
    """Each figure by the name of its budget."""
    figures: Counter[str] = Counter()
    for path in sorted((ROOT / "profkit").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(ROOT / "profkit").parts
        figures[parts[0] if len(parts) > 1 else "top"] += code_lines(text)
        figures["untyped mappings"] += len(_UNTYPED.findall(text))
    figures["README lines"] = len((ROOT / "README.md").read_text("utf-8").splitlines())
    pages = (ROOT / "docs").rglob("*.md")
    figures["words of docs"] = sum(len(page.read_text("utf-8").split()) for page in pages)
    methods = (ROOT / "docs/reference/methods").glob("*.md")
    figures["words of methods"] = sum(len(page.read_text("utf-8").split()) for page in methods)
    return figures


def overruns(figures: Mapping[str, int], budgets: Mapping[str, int]) -> Iterator[str]:
    """What is above its budget, or has none."""
    for name, figure in figures.items():
        if name not in budgets:
            yield f"{name}: no budget in pyproject.toml, [tool.profkit.budgets]"
        elif figure > budgets[name]:
            most = f"at most {budgets[name]:,} in pyproject.toml"
            yield f"{name}: {figure:,}, {most}; CONTRIBUTING.md says what to do"


def main() -> int:
    figures = measured()
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    rooms = {name: figure for name, figure in figures.items() if (ROOT / "profkit" / name).is_dir()}
    total = sum(rooms.values()) + figures["top"]
    problems = list(overruns(figures, options["tool"]["profkit"]["budgets"]))
    problems += [
        f"{name}: {lines:,} lines are more than {LARGEST_ROOM:.0%} of {total:,}"
        for name, lines in rooms.items()
        if lines > LARGEST_ROOM * total
    ]
    print(f"{total:,} code lines in {len(rooms)} rooms, {figures['words of docs']:,} words of docs")
    print(*problems, sep="\n", end="\n" if problems else "")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
