"""The formulas of the catalog: arithmetic over named columns.

A name may hold dots (`dram__bytes_read.sum`). Columns are float64 arrays of one value per launch;
NaN (missing) propagates, and undefined results (0/0, x/0) become NaN.
"""

import ast
from dataclasses import dataclass

from profkit.core import expression

_FUNCTIONS: dict[str, expression.Arity] = {
    "only_if": (2, 2), "net_of": (2, 2), "idle": (1, 1), "negligible": (2, 2), "largest": (1, 16),
    "round_up": (2, 2), "count": (1, 1),
}  # fmt: skip
_LANGUAGE = expression.Language(_FUNCTIONS, conditions=False, dotted=True)
_INFERENCES = {"idle", "negligible"}


@dataclass(frozen=True)
class Formula(expression.Expression):
    """A checked formula of the catalog."""

    @property
    def infers(self) -> bool:
        """Whether the formula infers its value from other quantities, and is undefined
        elsewhere."""
        names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return bool(names & _INFERENCES)

    @property
    def is_plain(self) -> bool:
        """Whether the formula is one name alone, so that its value is what was recorded."""
        return self.names == (self.text,)


def parse(text: str) -> Formula:
    """Check a formula; raises ValueError with the offending part."""
    checked = expression.parse(text, _LANGUAGE)
    return Formula(text.strip(), checked.tree, checked.names, _LANGUAGE)
