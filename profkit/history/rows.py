"""What the rows of a history's parts must hold: others are refused, with their part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import BadInput
from profkit.core.timestamp import YEARS
from profkit.history.record import Series
from profkit.timing.latency_format import LONGEST, SHORTEST

if TYPE_CHECKING:
    import duckdb

_SERIES = tuple(field.name for field in fields(Series))
# SQL that is false or NULL of a row that can't be; to DuckDB NaN is the largest number.
_VALID: Mapping[str, tuple[str, str]] = {
    **{name: (f'"{name}" IS NOT NULL', "a text") for name in _SERIES},
    "run": ("run <> ''", "the id of a run"),
    "item": ("item >= 0", "a number from 0 on"),
    "time": (f"year(time) BETWEEN {YEARS[0]} AND {YEARS[1]}", f"from {YEARS[0]} to {YEARS[1]}"),
    "block_medians": (
        "list_count(block_medians) = len(block_medians) AND "
        f"list_min(block_medians) >= {SHORTEST} AND list_max(block_medians) <= {LONGEST}",
        f"times from {SHORTEST:g} to {LONGEST:g} s",
    ),
}
_FAULT = " ".join(
    f"WHEN NOT coalesce({valid}, false) THEN '{name}'" for name, (valid, _) in _VALID.items()
)
_POINT = ", ".join((*_SERIES, "time", "block_medians"))


def check_rows(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[Path], types: Mapping[str, str]
) -> None:
    """Check the rows of these parts, the view `points`, whose columns are of these types.

    Raises BadInput for a column of another type, a row that can't be, and a row that has the run
    and the item of another point.
    """
    _check_types(connection, parts, types)
    faults = connection.execute(
        f"SELECT filename, file_row_number, CASE {_FAULT} END AS fault FROM points "
        "WHERE fault IS NOT NULL LIMIT 1"
    )
    for part, row, name in faults.fetchall():
        raise _refusal(part, f"row {row + 1}: {name} is not {_VALID[name][1]}")
    doubled = connection.execute(
        "SELECT arg_max((filename, file_row_number), filename) FROM points WHERE (run, item) IN "
        "(SELECT (run, item) FROM points GROUP BY run, item HAVING count(*) > 1) "
        f"GROUP BY run, item HAVING count(DISTINCT hash({_POINT})) > 1 LIMIT 1"
    )
    for ((part, row),) in doubled.fetchall():
        raise _refusal(part, f"row {row + 1}: another point has this run and item")


def _check_types(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[Path], types: Mapping[str, str]
) -> None:
    """Raise BadInput for a column that is of another type, or of several."""
    kinds = _types(connection, "parts").items()
    for name in [name for name, kind in kinds if kind != types.get(name, kind)]:
        for part in parts:
            connection.read_parquet(str(part)).create_view("part", replace=True)
            found = _types(connection, "part").get(name, types[name])
            if found != types[name]:
                raise _refusal(part, f"the column {name} is {found}, not {types[name]}")


def _types(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {view}").fetchall()}


def _refusal(part: Path | str, problem: str) -> BadInput:
    return BadInput(f"{part}: {problem}", "remove that part, and add its runs again")
