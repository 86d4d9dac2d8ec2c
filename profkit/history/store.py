"""The store of a history: Parquet files by month, append-only, queried by DuckDB.

    STORE/month=2026-11/part-<content hash>.parquet

A part is written under a temporary name and renamed, and no two parts of different content have one
name: writers need no lock, and what two of them add at once is all there. A row has the id of its
run and its place in it, by which a reader knows a point that two parts have; `median` follows from
its block medians, for other readers. Parts are checked before they are queried.
"""

from __future__ import annotations

import glob
import hashlib
import stat
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.atomic_file import replacement
from profkit.core.errors import BadInput, EnvironmentProblem, refusal
from profkit.core.extras import require
from profkit.core.grouping import grouped
from profkit.core.typed_file import Count, Model, Number
from profkit.history.record import Conditions, Point, Series
from profkit.history.rows import check_rows

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

DEFAULT = Path(".profkit/history")
SCHEMA = 1
"""Of the rows; in the metadata of each part."""
_KEY = "profkit.history"
_SERIES = tuple(field.name for field in fields(Series))
_CONDITIONS = tuple(field.name for field in fields(Conditions))
_NAMES = ", ".join(_SERIES)
_TYPES = (
    dict.fromkeys((*_SERIES, *_CONDITIONS), "VARCHAR")
    | {"item": "INTEGER", "time": "TIMESTAMP"}
    | dict.fromkeys(("run", "source", "commit"), "VARCHAR")
    | {"median": "DOUBLE", "block_medians": "DOUBLE[]"}
)  # fmt: skip
"""The columns of a part, and their types in DuckDB."""
_POINT = (*_SERIES, *_CONDITIONS, "time", "run", "source", "commit", "block_medians")
_SELECTED = ", ".join(f'"{name}"' for name in _POINT)
_ONCE = "QUALIFY row_number() OVER (PARTITION BY run, item) = 1"
_DIGITS = 24  # of a part's name; chosen: two of a million parts agree with probability 1e-17
_MODE = 0o666  # file mode before the umask: a shared folder has several writers
_GROUP = 8_192  # rows read at once; measured: one series of a million rows takes half the time


class Overview(Model, frozen=True):
    """A series in short; `median` is that of its last run in seconds."""

    series: Series
    runs: Count
    first: str
    last: str
    median: Number


class Store:
    """A folder of parts, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        require("history", "duckdb", "pyarrow")
        self.folder = folder
        self._checked: set[Path] = set()

    def known(self, runs: Iterable[str]) -> set[str]:
        """Those of these ids whose runs are in the store."""
        wanted = list(runs)
        if not wanted:
            return set()
        sql = "SELECT DISTINCT run FROM points WHERE run IN (SELECT unnest(?))"
        return {run for (run,) in self._query(sql, [wanted])}

    def add(self, points: Sequence[Point]) -> None:
        """Append points, those of a run together and in its order.

        Raises EnvironmentProblem where the folder can't be written.
        """
        months: dict[str, list[tuple[int, Point]]] = {}
        counts: dict[str, int] = {}
        for point in points:
            item = counts[point.run] = counts.get(point.run, -1) + 1
            months.setdefault(f"{point.time:%Y-%m}", []).append((item, point))
        for month, rows in months.items():
            folder = self.folder / f"month={month}"
            remedy = "give --store a writable folder"
            with refusal(f"{folder}: can't be written", EnvironmentProblem, remedy):
                folder.mkdir(parents=True, exist_ok=True)
                _write_part(folder, rows)

    def overviews(self) -> list[Overview]:
        """All series in the order of their names."""
        twice = "SELECT 1 FROM points GROUP BY run, item HAVING count(*) > 1 LIMIT 1"
        source = f"(SELECT * FROM points {_ONCE})" if self._query(twice) else "points"
        sql = (
            f"SELECT {_NAMES}, count(*), min(time), max(time), arg_max(block_medians, time) "
            f"FROM {source} GROUP BY {_NAMES} ORDER BY {_NAMES}"
        )
        return [
            Overview(
                Series(*key), runs, _utc(first).isoformat(), _utc(last).isoformat(),
                statistics.median(medians),
            )
            for *key, runs, first, last, medians in self._query(sql)
        ]  # fmt: skip

    def points(
        self, series: Iterable[Series] | None = None, last: int = 0
    ) -> dict[Series, list[Point]]:
        """The points of these series, or of all, each in the order of time; of each the `last`
        ones, 0: all."""
        where, values = _condition(series)
        sql = f"SELECT {_SELECTED}, item FROM points{where} {_ONCE}"
        if last:
            sql = (
                f"SELECT * FROM ({sql}) QUALIFY row_number() OVER "
                f"(PARTITION BY {_NAMES} ORDER BY time DESC, run DESC, item DESC) <= {int(last)}"
            )
        sql += " ORDER BY time, run, item"
        points = (_point(row[:-1]) for row in self._query(sql, values))
        return grouped((point.series, point) for point in points)

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query over `points`; [] for an empty store.

        Raises BadInput for a damaged part, and for one of a newer schema.
        """
        import duckdb

        parts = self._parts()
        if not parts:
            return []
        try:
            with _connection() as connection:
                _create_views(connection, parts, is_checked=self._checked.issuperset(parts))
                self._checked.update(parts)
                return connection.execute(sql, list(values)).fetchall()
        except duckdb.Error as error:
            message = " ".join(str(error).split())[:200]
            raise BadInput(f"{self.folder}: damaged ({message})", "remove that part") from None

    def _parts(self) -> list[Path]:
        with refusal(f"{self.folder}: can't be read", BadInput, "check the path"):
            return sorted(
                part
                for part in self.folder.glob("month=*/part-*.parquet")
                if stat.S_ISREG(part.lstat().st_mode)
            )


def median_of(point: Point) -> float:
    """The median of a point's blocks, by which it is shown."""
    return statistics.median(point.block_medians)


def _point(row: Sequence[Any]) -> Point:
    """The point of a row of `_POINT`; what an older part lacks is ""."""
    series, conditions = len(_SERIES), len(_SERIES) + len(_CONDITIONS)
    texts = [text or "" for text in row[:conditions]]
    time, run, source, commit, medians = row[conditions:]
    return Point(
        Series(*texts[:series]), Conditions(*texts[series:]), _utc(time), run,
        source or "", commit or "", tuple(medians),
    )  # fmt: skip


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)


def _condition(series: Iterable[Series] | None) -> tuple[str, list[str]]:
    """The condition of a query for points of these series, and its values."""
    if series is None:
        return "", []
    rows = [astuple(key) for key in series]
    if not rows:
        return " WHERE false", []
    if len(rows) == 1:  # DuckDB skips what can't be equal
        return f" WHERE {' AND '.join(f'{name} = ?' for name in _SERIES)}", list(rows[0])
    places = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    return f" WHERE ({_NAMES}) IN ({places})", [text for row in rows for text in row]


def _write_part(month: Path, rows: Sequence[tuple[int, Point]]) -> None:
    import msgspec
    import pyarrow as pa
    from pyarrow import parquet

    ordered = sorted(rows, key=lambda row: (astuple(row[1].series), row[1].time))
    values = [
        vars(point) | vars(point.series) | vars(point.conditions) | {
            "item": item,
            "time": point.time.astimezone(UTC).replace(tzinfo=None),
            "median": median_of(point),
        }
        for item, point in ordered
    ]  # fmt: skip
    columns = {name: [row[name] for row in values] for name in _TYPES}
    name = hashlib.sha256(msgspec.json.encode(columns)).hexdigest()[:_DIGITS]
    part = month / f"part-{name}.parquet"
    if not part.exists():
        with replacement(part, _MODE) as temporary:
            table = pa.table(columns, schema=_schema())
            parquet.write_table(table, temporary, compression="zstd", row_group_size=_GROUP)


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = {
        "VARCHAR": pa.string(), "INTEGER": pa.int32(), "TIMESTAMP": pa.timestamp("us"),
        "DOUBLE": pa.float64(), "DOUBLE[]": pa.list_(pa.float64()),
    }  # fmt: skip
    fields = [(name, types[kind]) for name, kind in _TYPES.items()]
    return pa.schema(fields, metadata={_KEY: str(SCHEMA)})


def _connection() -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, which installs and loads nothing."""
    import duckdb

    return duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )


def _create_views(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[Path], *, is_checked: bool = False
) -> None:
    """Create the view `points`, the rows of these parts; raises BadInput for a newer schema, and as
    `check_rows` where they were not checked before."""
    names = [glob.escape(str(part)) for part in parts]
    _check_schemas(connection, names)
    rows = connection.read_parquet(names, union_by_name=True, filename=True, file_row_number=True)
    rows.create_view("parts")
    typed = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in _TYPES.items())
    connection.execute(
        f"CREATE VIEW points AS SELECT {typed} WHERE false UNION ALL BY NAME SELECT * FROM parts"
    )
    if not is_checked:
        check_rows(connection, parts, _TYPES)


def _check_schemas(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Raise BadInput for a part of a newer schema."""
    sql = "SELECT file_name, value FROM parquet_kv_metadata(?) WHERE key = ?"
    for name, value in connection.execute(sql, [names, _KEY.encode()]).fetchall():
        if value != str(SCHEMA).encode():
            raise BadInput(
                f"{name}: schema {value.decode(errors='replace')[:20]} of the history, newer than "
                f"this profkit's {SCHEMA}",
                "update profkit: pip install -U profkit",
            )
