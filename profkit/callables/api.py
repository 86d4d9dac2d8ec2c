"""What `import profkit` offers to measure callables."""

from profkit.callables.calls import compare, profile
from profkit.callables.run import Run
from profkit.callables.sweep import sweep

__all__ = ["Run", "compare", "profile", "sweep"]
