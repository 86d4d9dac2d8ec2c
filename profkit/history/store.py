"""The store of a history: Parquet files by month, append-only, queried by DuckDB.

    STORE/month=2026-11/part-<content hash>.parquet

A part is written under a temporary name and renamed, and no two parts of different content have one
name: writers need no lock, and what two of them add at once is all there. A row has the id of its
run and its place in it, by which a reader knows a point that two parts have; `median` follows from
its block medians, for overviews.
"""

from __future__ import annotations

import glob
import hashlib
import stat
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.atomic_file import replacement
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.extras import require
from profkit.history.record import Conditions, Point, Series

if TYPE_CHECKING:
    import duckdb

DEFAULT = Path(".profkit/history")
SCHEMA = 1
"""Of the rows; in the metadata of each part."""
RECENT = 20
"""Runs of a series that an overview shows; chosen: a line of a terminal."""

_KEY = "profkit.history"
_SERIES = tuple(field.name for field in fields(Series))
_CONDITIONS = tuple(field.name for field in fields(Conditions))
_TEXTS = (*_SERIES, *_CONDITIONS, "run", "source", "commit", "parent")
_TYPES = (
    dict.fromkeys(_TEXTS, "VARCHAR")
    | {"item": "INTEGER", "time": "TIMESTAMP", "median": "DOUBLE", "block_medians": "DOUBLE[]"}
)  # fmt: skip
_MODE = 0o666  # file mode before the umask: a shared folder has several writers
# parts of a month; chosen: reading 256 small ones takes 0.1 s
_MOST_PARTS = 256
_GROUP = 8_192  # rows read at once; measured: one series of a million rows takes half the time
_ATTEMPTS = 5  # chosen: a reader meets a merge of parts once in a while, not five times in a row


@dataclass(frozen=True)
class Overview:
    """A series in short: its runs, the time of the first and the last, and the medians of the last
    `RECENT` in the order of time."""

    series: Series
    runs: int
    first: datetime
    last: datetime
    recent: tuple[float, ...]


class Store:
    """A folder of parts, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        require("history", "duckdb", "pyarrow")
        self.folder = folder

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
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _write_part(folder, rows)
            except OSError as error:
                raise EnvironmentProblem(
                    f"{folder}: can't be written ({error.strerror})",
                    "give --store a writable folder",
                ) from None
            self._merge(folder)

    def overviews(self) -> list[Overview]:
        """All series in the order of their names."""
        names = ", ".join(_SERIES)
        sql = (
            f"SELECT {names}, count(*), min(time), max(time), arg_max(median, time, {RECENT}) "
            f"FROM points GROUP BY {names} ORDER BY {names}"
        )
        doubled = self._doubled()
        again = self.points(doubled) if doubled else {}
        rows = []
        for *key, runs, first, last, recent in self._query(sql):
            series, medians = Series(*key), tuple(reversed(recent))
            if series in again:
                runs = len(again[series])
                medians = tuple(median_of(point) for point in again[series][-RECENT:])
            rows.append(Overview(series, runs, _utc(first), _utc(last), medians))
        return rows

    def _doubled(self) -> list[Series]:
        """The series of points that two parts have. Counting the runs of each series instead takes
        three times as long."""
        twice = "SELECT hash(run, item) FROM points GROUP BY ALL HAVING count(*) > 1"
        if not self._query(f"{twice} LIMIT 1"):
            return []
        names = ", ".join(_SERIES)
        sql = f"SELECT DISTINCT {names} FROM points WHERE hash(run, item) IN ({twice})"
        return [Series(*row) for row in self._query(sql)]

    def points(
        self, series: Iterable[Series] | None = None, last: int = 0
    ) -> dict[Series, list[Point]]:
        """The points of these series, or of all, each in the order of time; of each the `last`
        ones, 0: all."""
        where, values = _condition(series)
        sql = (
            f"SELECT {_SELECTED}, item FROM points{where} "
            "QUALIFY row_number() OVER (PARTITION BY run, item) = 1"
        )
        if last:
            sql = (
                f"SELECT {_SELECTED}, item FROM ({sql}) QUALIFY row_number() OVER "
                f"(PARTITION BY {', '.join(_SERIES)} ORDER BY time DESC, run DESC, item DESC) "
                f"<= {int(last)}"
            )
        sql += " ORDER BY time, run, item"
        by_series: dict[Series, list[Point]] = {}
        for point in (_point(row[:-1]) for row in self._query(sql, values)):
            by_series.setdefault(point.series, []).append(point)
        return by_series

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query over `points`; [] for an empty store.

        Raises BadInput for a damaged part, and for one of a newer schema.
        """
        import duckdb

        for _ in range(_ATTEMPTS):
            parts = self._parts()
            if not parts:
                return []
            try:
                with _connection() as connection:
                    return _rows(connection, parts, sql, values)
            except duckdb.Error as error:
                if all(map(Path.is_file, parts)):
                    message = " ".join(str(error).split())[:200]
                    raise BadInput(
                        f"{self.folder}: damaged ({message})", "remove that part"
                    ) from None
        raise BadInput(f"{self.folder}: changes all the time", "try again")

    def _parts(self) -> list[Path]:
        try:
            return sorted(
                part
                for part in self.folder.glob("month=*/part-*.parquet")
                if stat.S_ISREG(part.lstat().st_mode)
            )
        except OSError as error:
            raise BadInput(f"{self.folder}: can't be read ({error.strerror})") from None

    def _merge(self, month: Path) -> None:
        """Make one part of many, so that queries stay fast; a store that can't be merged stays.

        The merged part is there before others go, and a point that two parts have counts once.
        """
        parts = [part for part in self._parts() if part.parent == month]
        if len(parts) <= _MOST_PARTS:
            return
        name = hashlib.sha256("\n".join(part.name for part in parts).encode()).hexdigest()
        merged = month / f"part-{name[:_DIGITS]}.parquet"
        with suppress(OSError, BadInput):
            rows = [(row[-1], _point(row[:-1])) for row in _merged_rows(parts)]
            _write(merged, _columns(rows))
            try:
                parts[0].unlink(missing_ok=True)
            except OSError:  # a folder where only the owner of a file may remove it
                merged.unlink()
                return
            for part in parts[1:]:
                part.unlink(missing_ok=True)


def median_of(point: Point) -> float:
    """The median of a point's blocks, by which it is shown."""
    return statistics.median(point.block_medians)


_DIGITS = 24  # of a part's name; chosen: two of a million parts agree with probability 1e-17
_COLUMNS = (*_SERIES, *_CONDITIONS, "time", "run", "source", "commit", "parent", "block_medians")
_SELECTED = ", ".join(f'"{name}"' for name in _COLUMNS)


def _point(row: Sequence[Any]) -> Point:
    """The point of a row of `_COLUMNS`; what an older part lacks is ""."""
    texts = [text or "" for text in row[:12]]
    time, run, source, commit, parent, medians = row[12:]
    return Point(
        series=Series(*texts[:5]),
        conditions=Conditions(*texts[5:]),
        time=_utc(time),
        run=run,
        source=source or "",
        commit=commit or "",
        parent=parent or "",
        block_medians=tuple(medians),
    )


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)


def _condition(series: Iterable[Series] | None) -> tuple[str, list[str]]:
    """The condition of a query for points of these series, and its values."""
    if series is None:
        return "", []
    rows = [_names(key) for key in series]
    if not rows:
        return " WHERE false", []
    if len(rows) == 1:  # DuckDB skips what can't be equal
        return f" WHERE {' AND '.join(f'{name} = ?' for name in _SERIES)}", list(rows[0])
    places = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    return f" WHERE ({', '.join(_SERIES)}) IN ({places})", [text for row in rows for text in row]


def _names(series: Series) -> tuple[str, ...]:
    return series.target, series.variant, series.shape, series.gpu_model, series.branch


def _columns(rows: Sequence[tuple[int, Point]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        name: [getattr(point.series, name) for _, point in rows] for name in _SERIES
    }
    columns |= {
        name: [getattr(point.conditions, name) for _, point in rows] for name in _CONDITIONS
    }
    columns["item"] = [item for item, _ in rows]
    columns["time"] = [point.time.astimezone(UTC).replace(tzinfo=None) for _, point in rows]
    for name in ("run", "source", "commit", "parent"):
        columns[name] = [getattr(point, name) for _, point in rows]
    columns["median"] = [median_of(point) for _, point in rows]
    columns["block_medians"] = [point.block_medians for _, point in rows]
    return columns


def _write_part(month: Path, rows: Sequence[tuple[int, Point]]) -> None:
    import msgspec

    columns = _columns(sorted(rows, key=lambda row: (_names(row[1].series), row[1].time)))
    name = hashlib.sha256(msgspec.json.encode(columns)).hexdigest()[:_DIGITS]
    part = month / f"part-{name}.parquet"
    if not part.exists():
        _write(part, columns)


def _write(part: Path, columns: Mapping[str, list[Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types = {
        "item": pa.int32(),
        "time": pa.timestamp("us"),
        "median": pa.float64(),
        "block_medians": pa.list_(pa.float64()),
    }
    schema = pa.schema(
        [(name, types.get(name, pa.string())) for name in columns], metadata={_KEY: str(SCHEMA)}
    )
    with replacement(part, _MODE) as temporary:
        table = pa.table(dict(columns), schema=schema)
        parquet.write_table(table, temporary, compression="zstd", row_group_size=_GROUP)


def _connection() -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, which installs and loads nothing."""
    import duckdb

    return duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )


def _rows(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[Path], sql: str, values: Sequence[Any]
) -> list[tuple[Any, ...]]:
    """The rows of a query over `points`, the rows of these parts."""
    names = [glob.escape(str(part)) for part in parts]
    _check_schemas(connection, names)
    connection.read_parquet(names, union_by_name=True).create_view("parts")
    typed = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in _TYPES.items())
    connection.execute(
        f"CREATE VIEW points AS SELECT {typed} WHERE false UNION ALL BY NAME SELECT * FROM parts"
    )
    return connection.execute(sql, list(values)).fetchall()


def _check_schemas(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Raise BadInput for a part of a newer schema."""
    sql = "SELECT file_name, value FROM parquet_kv_metadata(?) WHERE key = ?"
    for name, value in connection.execute(sql, [names, _KEY.encode()]).fetchall():
        if not value.isdigit() or int(value) > SCHEMA:
            raise BadInput(
                f"{name}: schema {value.decode(errors='replace')} of the history, newer than this "
                f"profkit's {SCHEMA}",
                "update profkit: pip install -U profkit",
            )


def _merged_rows(parts: Sequence[Path]) -> Iterator[tuple[Any, ...]]:
    sql = (
        f"SELECT {_SELECTED}, item FROM points QUALIFY row_number() OVER "
        f"(PARTITION BY run, item) = 1 ORDER BY {', '.join(_SERIES)}, time, run, item"
    )
    import duckdb

    try:
        with _connection() as connection:
            yield from _rows(connection, parts, sql, [])
    except duckdb.Error:  # another process merges them
        raise BadInput(f"{parts[0].parent}: can't be merged") from None
