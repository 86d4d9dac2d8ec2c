"""Names of blocks in views that are not documents yet."""

from profkit.ui.document import Facts as Panel
from profkit.ui.document import Row
from profkit.ui.document import Table as Grid

__all__ = ["Grid", "Panel", "Row"]
