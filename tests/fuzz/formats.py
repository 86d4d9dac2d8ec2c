"""Every format that profkit reads: a valid sample, how it is spoiled, and verbs that read it."""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
import zstandard
from pyarrow import parquet

from profkit.core.typed_file import encode
from profkit.history.store import Store
from profkit.report.framing import check
from profkit.study.run import derived_summary
from profkit.timeline.export import COLUMNS
from tests.conftest import H200, ROOT, baseline_folder, plain_bytes, scratch, written_once
from tests.fuzz.mutations import (
    DIGITS,
    as_json,
    as_yaml,
    expression,
    spoiled_bytes,
    spoiled_document,
)
from tests.fuzz.options import with_options
from tests.history.histories import CUDNN, FLASH, point
from tests.report.edited import Change, edited, instance, valued
from tests.timeline import kineto as traced

REPORT = "sdpa_s512_flash_two_metrics"
OTHER = "sdpa_s512_flash_set_basic"
(RUN,) = (H200 / "sdpa_s512").iterdir()
BASELINE = baseline_folder("l4_study")
Spoil = Callable[[random.Random], bytes]
_Around = Mapping[str, Path | str]


@dataclass(frozen=True)
class Format:
    """A file that is spoiled, the files around it, and command lines that read it, of which each
    case takes one. A name in `around` stands for a file to link to, or for text to write. A share
    of `optional` command lines gets options with values at random."""

    name: str
    file: str
    spoil: Spoil
    commands: Sequence[Sequence[str]]
    around: _Around | None = None
    optional: float = 0.2

    def write(self, folder: Path, chance: random.Random) -> list[str]:
        """Write a case into a folder; its command line, with words of `{}` for what is random."""
        for name, content in (self.around or {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                path.symlink_to(content)
            else:
                path.write_text(content, encoding="utf-8")
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.spoil(chance))
        words = list(chance.choice(self.commands))
        is_optional = "run" not in words and chance.random() < self.optional
        return with_options(words, chance) if is_optional else words


def _text(document: Any, write: Callable[[Any], bytes], chance: random.Random) -> bytes:
    """A document spoiled by its structure, as text, or both."""
    kind = chance.randrange(5)
    text = write(spoiled_document(document, chance) if kind else document)
    return text if kind > 1 else spoiled_bytes(text, chance)


def _json(path: Path) -> Spoil:
    return partial(_text, json.loads(path.read_text(encoding="utf-8")), as_json)


def _yaml(path: Path) -> Spoil:
    return partial(_text, yaml.safe_load(path.read_text(encoding="utf-8")), as_yaml)


@cache
def _plain(name: str) -> bytes:
    return plain_bytes(name)


def _report(chance: random.Random) -> bytes:
    return spoiled_bytes(_plain(REPORT), chance, head=4000)


def _packed(chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return zstandard.compress(_report(chance))
    return spoiled_bytes((H200 / f"{REPORT}.ncu-repz").read_bytes(), chance, head=64)


_NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-300, 1e300, 2.0**64, 0.5, "text", None)
_TELLING = (
    "gpu__time_duration.sum", "device__attribute_", "launch__", "sm__cycles", "smsp__inst_executed",
    "dram__bytes", "sass__inst_executed",
)  # fmt: skip
"""How the names of metrics begin that most of an analysis rests on."""


def _values_of_a_report(chance: random.Random) -> bytes:
    """A report with other values of some metrics, of the device and of instances among them."""
    report = H200 / f"{chance.choice((REPORT, OTHER, 'sdpa_s512_flash'))}.ncu-repz"
    names = metric_names(report)
    changes: dict[str, Change] = {}
    for _ in range(chance.randint(1, 4)):
        start = chance.choice(_TELLING)
        some = [name for name in names if name.startswith(start)] or names
        number = chance.choice(_NUMBERS)
        change = valued(number)
        if isinstance(number, float) and chance.random() < 0.3:
            change = instance(number)
        changes[chance.choice(some)] = change
    file = scratch() / f"{chance.getrandbits(64):x}.ncu-rep"
    data = edited(report, file, changes).read_bytes()
    file.unlink()
    return data


@cache
def metric_names(report: Path) -> tuple[str, ...]:
    return tuple(sorted(check(report).names))


_CELLS: Mapping[str, Sequence[Any]] = {
    "string": (None, "", "x" * 5000, "\x1b[31m", "\u202e", "</script>", "$a$", "a\nb", "9" * 400),
    "int32": (None, -1, 0, 2**31 - 1),
    "timestamp[us]": (None, datetime(1, 1, 1), datetime(9999, 12, 31), datetime(1970, 1, 1)),
    "double": (None, math.nan, math.inf, -1.0, 0.0, 1e308, 5e-324),
    "list<element: double>": (
        None, [], [math.nan], [math.inf], [0.0], [-1.0], [1e308], [5e-324], [None], [1e-5] * 999,
    ),
}  # fmt: skip
"""Values of the cells of a history's part, by the type of their column."""


@cache
def _part() -> Any:
    folder = written_once(scratch() / "history", _write_history)
    (part,) = folder.rglob("*.parquet")
    return parquet.read_table(part)


def _write_history(folder: Path) -> None:
    Store(folder).add([point(2 + day, series) for series in (FLASH, CUDNN) for day in range(1, 13)])


def _history(chance: random.Random) -> bytes:
    """A part with other cells, a constant column, another type, or damaged bytes."""
    table = _part()
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(table.num_columns)
        field = table.schema.field(place)
        rows = table[field.name].to_pylist()
        values = _CELLS.get(str(field.type), (None,))
        kind = chance.randrange(8)
        if kind == 0:
            table = table.remove_column(place)
            continue
        if kind == 1:
            column = pa.array([str(row) for row in rows])
        elif kind == 2:
            column = pa.array([chance.choice((rows[0], *values))] * len(rows), field.type)
        else:
            for row in chance.sample(range(len(rows)), chance.randint(1, len(rows))):
                rows[row] = chance.choice(values)
            column = pa.array(rows, field.type)
        table = table.set_column(place, field.name, column)
    if chance.random() < 0.1:
        table = table.replace_schema_metadata({"profkit.history": chance.choice(("2", DIGITS))})
    written = io.BytesIO()
    parquet.write_table(table, written)
    data = written.getvalue()
    return spoiled_bytes(data, chance) if chance.random() < 0.1 else data


_SQL_VALUES = (
    "NULL", "-1", "9223372036854775807", "-9223372036854775808", "1e308", "''", "'x'", "x'00ff'",
    "zeroblob(3000000)", "hex(zeroblob(100000))", f"'{DIGITS}'", "char(0)", "char(8238)",
)  # fmt: skip
_SCHEMAS = (
    "DROP TABLE {table}",
    "ALTER TABLE {table} RENAME COLUMN \"{column}\" TO gone",
    "ALTER TABLE {table} RENAME TO old; CREATE VIEW {table} AS WITH RECURSIVE n(i) AS (SELECT 1 "
    "UNION ALL SELECT i + 1 FROM n) SELECT i AS \"{column}\" FROM n",
    "ALTER TABLE {table} ADD COLUMN more AS (hex(zeroblob(1000000)))",
    "CREATE TRIGGER t AFTER INSERT ON {table} BEGIN INSERT INTO {table} SELECT * FROM {table}; END",
    "ALTER TABLE {table} RENAME TO old; CREATE TABLE {table} (\"{column}\" AS "
    "(length(hex(zeroblob(100000000)))), one); INSERT INTO {table} (one) VALUES (1), (2)",
    "INSERT INTO {table} SELECT * FROM {table}",
    "CREATE TABLE more (x CHECK (x LIKE '%a%a%a%a%a%a%a%a%a%a%b'));"
    "INSERT INTO more VALUES (hex(zeroblob(100)))",
)  # fmt: skip


def _database(chance: random.Random) -> bytes:
    data = (RUN / "timeline.sqlite").read_bytes()
    if chance.random() < 0.3:
        return spoiled_bytes(data, chance, head=4096)
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        tables = sorted(set(names) & set(COLUMNS))
        for _ in range(chance.randint(1, 3)):
            table = chance.choice(tables)
            column = chance.choice(COLUMNS[table])
            with suppress(sqlite3.Error):
                if chance.random() < 0.7:
                    value = chance.choice(_SQL_VALUES)
                    some = "WHERE rowid % 3 = 1" if chance.random() < 0.5 else ""
                    database.execute(f'UPDATE {table} SET "{column}" = {value} {some}')
                else:
                    change = chance.choice(_SCHEMAS)
                    database.executescript(change.format(table=table, column=column))
        database.commit()
        return database.serialize()


def _compressed_trace(chance: random.Random) -> bytes:
    text = json.dumps(traced.trace(traced.steps(5))).encode()
    if chance.random() < 0.5:
        return spoiled_bytes(gzip.compress(text), chance)
    return gzip.compress(spoiled_bytes(text, chance))


_CLAIMS = """claims:
  - {gpu: "H100 SXM", dtype: fp16, B: 32, H: 8, S: 512, D: 64, causal: false, median_ms: 0.0690,
     ci_ms: [0.0688, 0.0692], gflops: 248800, percent_of_peak: {compute: 25.2}}
  - text: "FA-2 takes 69.0 us on an H200, 1.49x slower than cuDNN with 46.8 us"
l4_fp16_ms: {128: 13.7, 256: 27.8}  # L4, ms
peak: {tflops: 989, of: datasheet}
"""
_RULE = """rules:
  - name: own
    category: l2_bandwidth
    title: Much L2
    explanation: It is.
    when: ["l2_busy > 0.1", "known(dram_busy) and dram_busy < 2 * l2_busy"]
    relieves: {l2: "where(l2_busy > 0.5, 0.5, 1)"}
    evidence: [l2_busy]
    actions: ["Do less.", {text: "Do nothing.", since: 9.0}]
    verify: ["It is faster."]
"""
_OTHERS = {
    "raw_latencies": [0.0691, 0.0688, 0.0702, 0.069] * 10,
    "statistics": {"median_ms": 0.069, "ci_95_lower": 0.068, "ci_95_upper": 0.0702},
}
_MATCH = {"old kernel": "new kernel", "a": "b"}
_NAMES = ("l2_busy", "dram_busy", "duration", "before_duration", "registers_per_thread", "nothing")


def _rule(chance: random.Random) -> bytes:
    document = yaml.safe_load(_RULE)
    if chance.random() < 0.4:
        document["rules"][0]["when"] = [expression(chance, _NAMES)]
        return as_yaml(document)
    return _text(document, as_yaml, chance)


def _manifest() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RUN / "manifest.json").read_text(encoding="utf-8"))
    document["files"] = {"r.ncu-repz": {"launches": 1, "sha256": "0" * 64, "bytes": 1}}
    return document


def _kept() -> dict[str, Any]:
    return {
        "schema": "profkit.kept-baseline/1", "name": "main", "gpu": "NVIDIA H200",
        "saved": "2026-11-20T15:47:12+00:00", "folder": "f", "reports": ["r.ncu-repz"],
        "files": {"r.ncu-repz": {"bytes": 1, "sha256": "0" * 64}},
    }  # fmt: skip


@cache
def _baseline() -> Path:
    """The first two shapes of a recorded baseline: all of them take seconds to derive."""
    return written_once(scratch() / "two_shapes", _write_baseline)


def _write_baseline(folder: Path) -> None:
    folder.mkdir()
    plan = json.loads((BASELINE / "baseline.json").read_text(encoding="utf-8"))
    shapes = plan["asked"]["matrix"]["shapes"]
    del shapes[2:]
    (folder / "baseline.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / "cells").mkdir()
    for shape in shapes:
        for cell in (BASELINE / "cells").glob(f"{shape['name']}.*.json"):
            (folder / "cells" / cell.name).symlink_to(cell)
    (folder / "summary.json").write_text(
        encode(derived_summary(folder), indent=1), encoding="utf-8"
    )


def formats() -> tuple[Format, ...]:
    """All of them."""
    report, other = H200 / f"{REPORT}.ncu-repz", H200 / f"{OTHER}.ncu-repz"
    saved = H200 / "timing" / "flash_cudnn.json"
    around: _Around = {
        "r.ncu-repz": report,
        "other.ncu-repz": other,
        "good.json": saved,
    }
    reading = (
        ["analyze"], ["analyze", "--format", "json"], ["checklist"], ["source"], ["metrics"],
        ["roofline"], ["roofline", "--format", "json"], ["report", "-o", "page.html", "--force"],
        ["analyze", "--format", "markdown"], ["analyze", "--without-counters"], ["next"],
        ["checklist", "--format", "json"], ["source", "-o", "source.html", "--force"],
        ["metrics", "--format", "json"], ["roofline", "-o", "plot.svg", "--force"],
    )  # fmt: skip
    whole: Sequence[Sequence[str]] = [
        *([verb, "x.ncu-rep", *more] for verb, *more in reading),
        ["diff", "x.ncu-rep", "r.ncu-repz"], ["next", "r.ncu-repz", "x.ncu-rep"],
        ["diff", "r.ncu-repz", "x.ncu-rep", "--format", "json"],
    ]  # fmt: skip
    followed: Sequence[Sequence[str]] = [
        ["history", "list"], ["history", "list", "--format", "json"], ["history", "show", "flash"],
        ["history", "show", "cudnn", "--format", "markdown"], ["history", "check"],
        ["history", "check", "--format", "json"],
        ["history", "page", "--force"], ["history", "add", "good.json"],
    ]  # fmt: skip
    profiled: Sequence[Sequence[str]] = [
        ["timeline", "x.json"], ["analyze", "x.json"], ["checklist", "x.json"],
        ["timeline", "x.json", "--format", "json"], ["timeline", "x.json", "--nvtx", "step"],
    ]  # fmt: skip
    stepped: Sequence[Sequence[str]] = [
        ["analyze", "x.sqlite"], ["analyze", "x.sqlite", "--format", "json"],
        ["rules", "explain", "launch_overhead", "--on", "x.sqlite"], ["timeline", "x.sqlite"],
        ["timeline", "x.sqlite", "--format", "json"], ["checklist", "x.sqlite"],
        ["timeline", "x.sqlite", "-o", "page.html", "--force"],
        ["timeline", "x.sqlite", "--perfetto", "x.pftrace", "--force"],
        ["diff", "x.sqlite", "x.sqlite"],
    ]  # fmt: skip
    timed = (
        ["time", "--from", "x.json"], ["time", "--from", "x.json", "--format", "json"],
        ["compare", "x.json", "good.json"], ["compare", "good.json", "x.json", "--unit", "us"],
        ["roofline", "r.ncu-repz", "--latency", "x.json"],
        ["baseline", "import", "x.json", "-o", "out", "--gpu", "L4", "--unit", "ms"],
    )  # fmt: skip
    audit = (["audit", "x.yaml"], ["audit", "x.yaml", "--gpu", "L4", "--format", "json"])
    kept = _baseline()
    cells = sorted((kept / "cells").iterdir())
    cell = cells[0]
    baseline: _Around = {
        "b/baseline.json": kept / "baseline.json",
        "b/summary.json": kept / "summary.json",
        **{f"b/cells/{file.name}": file for file in cells},
    }
    told = (["baseline", "report", "b"], ["baseline", "report", "b", "--format", "html"])
    run: _Around = {
        "r.ncu-repz": report,
        "manifest.json": json.dumps(_manifest() | {"files": {}}),
    }
    of_run = (["analyze", "r.ncu-repz"], ["analyze", "."], ["diff", "r.ncu-repz", "r.ncu-repz"])
    claims = yaml.safe_load(_CLAIMS)
    return (
        Format("report", "x.ncu-rep", _report, whole, around),
        Format("values of a report", "x.ncu-rep", _values_of_a_report, whole, around),
        Format("options", "x.ncu-rep", lambda _: _plain(REPORT), whole, around, optional=1),
        Format("options of others", "x.sqlite", lambda _: (RUN / "timeline.sqlite").read_bytes(),
               [*stepped, *timed[:-1], *audit, ["plan", "--gpu", "H200"], ["log", "."], *followed,
                ["rules", "list"], ["rules", "explain", "wgmma"], ["metrics"], ["doctor"]],
               {"x.json": saved, "x.yaml": _CLAIMS, "manifest.json": json.dumps(_manifest()),
                ".profkit/history": H200 / "history", **around}, optional=1),
        Format("part of a history", ".profkit/history/month=2026-10/part-0.parquet", _history,
               followed, around),
        Format("pytest-benchmark", "x.json",
               _json(ROOT / "tests" / "data" / "history" / "pytest_benchmark.json"),
               [["history", "add", "x.json"]]),
        Format("latency for a history", "x.json", _json(saved), [["history", "add", "x.json"]]),
        Format("packed report", "x.ncu-repz", _packed, [["analyze", "x.ncu-repz"]], around),
        Format("manifest", "manifest.json", partial(_text, _manifest(), as_json),
               [*of_run, ["report", ".", "-o", "page.html", "--force"]], around),
        Format("check", "check.json", _json(RUN / "check.json"), of_run, run),
        Format("latency of a run", "latency.json", _json(saved), of_run, run),
        Format("timeline of a run", "timeline.sqlite", _database, of_run, run),
        Format("latency", "x.json", _json(saved), timed, around),
        Format("others' latency", "x.json", partial(_text, _OTHERS, as_json), timed, around),
        Format("bare latency", "x.json", partial(_text, [69.1, 69.2] * 30, as_json), timed, around),
        Format("cell", "x.json", _json(cell), timed, around),
        Format("cells", f"b/cells/{cell.name}", _json(cell),
               [*told, ["baseline", "run", str(ROOT / "targets" / "sdpa_s512.py"), "--out", "b",
                        "--resume", "--device", "cpu", "--budget", "1s"]],
               {name: at for name, at in baseline.items() if cell.name not in name}),
        Format("summary", "b/summary.json", _json(kept / "summary.json"), told,
               {name: at for name, at in baseline.items() if "summary" not in name}),
        Format("plan", "b/baseline.json", _json(kept / "baseline.json"), told,
               {name: at for name, at in baseline.items() if "baseline.json" not in name}),
        Format("matrix", "x.yaml", _yaml(ROOT / "targets" / "matrices" / "l4_study.yaml"),
               [["baseline", "import", "good.json", "-o", "out", "--matrix", "x.yaml"]], around),
        Format("rules", "x.yaml", _rule,
               [["rules", "check", "x.yaml"], ["analyze", "r.ncu-repz", "--rules", "x.yaml"],
                ["checklist", "other.ncu-repz", "--rules", "x.yaml"]], around),
        Format("pair", "pairs/p/pair.yaml",
               partial(_text, {"category": "l2_bandwidth", "second_limit": "x"}, as_yaml),
               [["rules", "score", "--pairs", "pairs"]],
               {"pairs/p/before.ncu-repz": report, "pairs/p/after.ncu-repz": report}),
        Format("pair's latency", "pairs/p/latency.json",
               partial(_text, {"before": 2.0, "after": {"median_ms": 1.0}}, as_json),
               [["rules", "score", "--pairs", "pairs"]],
               {"pairs/p/before.ncu-repz": report, "pairs/p/pair.yaml": "category: l2_bandwidth"}),
        Format("claims", "x.yaml", partial(_text, claims, as_yaml), audit),
        Format("claims as written", "x.yaml",
               lambda chance: spoiled_bytes(_CLAIMS.encode(), chance), audit),
        Format("claims in JSON", "x.json", partial(_text, _string_keys(claims), as_json),
               [["audit", "x.json"]]),
        Format("match", "x.yaml", partial(_text, _MATCH, as_yaml),
               [["diff", "r.ncu-repz", "r.ncu-repz", "--match", "x.yaml"]], around),
        Format("timeline", "x.sqlite", _database,
               stepped),
        Format("trace", "x.json", partial(_text, traced.trace(traced.steps(5)), as_json), profiled),
        Format("compressed trace", "x.json.gz", _compressed_trace,
               [[verb, "x.json.gz"] for verb, *_ in profiled]),
        Format("ceilings", "x.json", _json(H200 / "ceilings.json"),
               [["roofline", "r.ncu-repz", "--peaks", "measured", "--ceilings", "x.json"]], around),
        Format("kept baseline", ".profkit/baselines/main/NVIDIA_H200/baseline.json",
               partial(_text, _kept(), as_json),
               [["diff", "r.ncu-repz", "--baseline", "main"],
                ["diff", "r.ncu-repz", "--baseline", "none"]], around),
        Format("kept summary of profiles", "b/profiles/profiles.json",
               partial(_text, [{"id": "x", "folder": "f", "reason": ""}], as_json), told, baseline),
    )  # fmt: skip


def _string_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _string_keys(inner) for key, inner in value.items()}
    return [_string_keys(inner) for inner in value] if isinstance(value, list) else value
