"""Optional dependencies (extras), and the error where they are not installed."""

from collections.abc import Mapping
from importlib.util import find_spec

from profkit.core.errors import EnvironmentProblem

_EXTRAS: Mapping[str, str] = {
    "duckdb": "history",
    "matplotlib": "plots",
    "mcp": "mcp",
    "pandas": "tables",
    "perfetto": "perfetto",
    "pyarrow": "tables",
    "submitit": "slurm",
}


def require(use: str, *packages: str) -> None:
    """Raise EnvironmentProblem unless the packages are installed; `use` is what needs them."""
    if problem := lacking(use, *packages):
        raise problem


def lacking(use: str, *packages: str) -> EnvironmentProblem | None:
    """The problem that packages of an extra are not installed; None where they are."""
    absent = [name for name in packages if find_spec(name) is None]
    if not absent:
        return None
    return EnvironmentProblem(
        f"{use} requires {' and '.join(absent)} (not installed)",
        f"pip install {' '.join(absent)}, or '.[{_EXTRAS[absent[0]]}]' in profkit's checkout",
    )
