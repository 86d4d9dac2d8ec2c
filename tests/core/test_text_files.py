"""The one place that reads text: what it refuses, how fast, and that nothing reads beside it."""

from __future__ import annotations

import ast
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from profkit.core.errors import BadInput
from profkit.core.regular_file import digest, open_regular
from profkit.core.text_files import Malformed, MissingFile, parse_json, read_json, read_text
from profkit.core.yaml_files import compose_yaml, read_yaml
from tests.conftest import ROOT

Reader = Callable[[Path], object]
READERS: tuple[Reader, ...] = (read_text, read_json, read_yaml, open_regular, digest)
LAUGHS = "\n".join(
    ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
)
MERGES = "\n".join(
    ["a0: &a0 {x: 1, y: 2}"]
    + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 10)]
)


@pytest.fixture(params=["pipe", "socket", "/dev/zero", "folder"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """What is no regular file."""
    path = tmp_path / "special.json"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "/dev/zero":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            yield path
        return
    yield path


@pytest.mark.parametrize("reader", READERS)
def test_only_regular_files_are_opened(special: Path, reader: Reader) -> None:
    with pytest.raises((BadInput, IsADirectoryError)):
        reader(special)


@pytest.mark.parametrize("reader", [read_text, read_json, read_yaml])
def test_a_sparse_file_is_refused_by_its_size(tmp_path: Path, reader: Reader) -> None:
    path = tmp_path / "sparse.json"
    with path.open("wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(BadInput, match="larger than"):
        reader(path)


def test_a_missing_file_can_be_distinguished_from_a_bad_one(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_json(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_json(tmp_path / "bytes.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nul",
        '{"a": NaN}',
        "[-Infinity]",
        "[1e999]",
        "[" * 100_000,
        "[" * 60 + "]" * 60,
        '{"a":' * 60 + "1" + "}" * 60,
        '["' + '\\"' * 100_000,
        "[" + "9" * 5000 + "]",
        "[" + "1," * 3_000_000 + "1]",
        '["\\ud800"]',
        "\ufeff[]",
        "[\x00]",
    ],
    ids=range(15),
)
def test_json_that_is_refused(text: str) -> None:
    began = time.process_time()
    with pytest.raises(Malformed):
        parse_json(text)
    assert time.process_time() - began < 2


def test_brackets_and_commas_in_a_string_are_no_lists() -> None:
    text = '["' + "[{," * 1_000_000 + '\\" [[[[ ", "\\\\", [1]]'
    assert parse_json(text)[1:] == ["\\", [1]]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**98), 10**98) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=30,
    )
)
def test_json_and_yaml_are_read_as_they_were_written(document: object) -> None:
    import json

    text = json.dumps(document)
    if "\\ud" not in text:
        assert parse_json(text) == document
    node = compose_yaml(yaml.safe_dump(document, allow_unicode=True))
    assert node is not None
    built = yaml.constructor.SafeConstructor().construct_document(node)
    assert built == yaml.safe_load(yaml.safe_dump(document, allow_unicode=True))


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 10_000,
        LAUGHS,
        MERGES,
        "a: &a [*a]",
        "&a0 [1]\n",
        "a: *b",
        "a: 2026-13-45",
        "a: 2026-02-30 25:61:61",
        "a: " + "9" * 5000,
        "9" * 5000 + ": a",
        "a: !!int x",
        "a: !!int ''",
        "a: !!bool perhaps",
        "a: !!timestamp never",
        "a: !!python/object/apply:os.getcwd []",
        "[" + "1, " * 300_000 + "]",
        "a: \x07",
        "--- 1\n--- 2",
        "? [a]\n: b",
        "a: &x [" + "z, " * 1000 + "]\n" + "".join(f"b{n}: *x\n" for n in range(1000)),
        "".join(f"a{n}: &a{n} [*a{n - 1}]\n" if n else "a0: &a0 []\n" for n in range(100)),
    ],
    ids=range(24),
)
def test_yaml_that_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    began = time.process_time()
    if text == "&a0 [1]\n":
        assert read_yaml(path) == [1]
        return
    with pytest.raises(Malformed):
        read_yaml(path)
    assert time.process_time() - began < 4


def test_a_file_of_many_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("rules:\n" + "- {name: x}\n" * 1_000_000)
    began = time.process_time()
    with pytest.raises(BadInput, match="larger than"):
        read_yaml(path)
    assert time.process_time() - began < 0.5


def test_an_alias_counts_as_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("base: &b {x: 1}\nmore: {<<: *b, y: 2}\nlist: [*b, *b]\n")
    assert read_yaml(path) == {
        "base": {"x": 1},
        "more": {"x": 1, "y": 2},
        "list": [{"x": 1}, {"x": 1}],
    }


_PARSERS = {("json", "load"), ("json", "loads"), ("np", "load"), ("pd", "read_csv")}
_YAML = {"load", "safe_load", "load_all", "safe_load_all", "compose", "parse", "scan", "full_load"}
_FREE = {  # module: why it may read by itself
    "core/regular_file.py": "opens files",
    "core/text_files.py": "reads text",
    "core/yaml_files.py": "what is shipped",
    "capture/environment.py": "what is shipped",
    "report/memory.py": "/proc",
    "schemas/__main__.py": "the schemas that it writes",
    "score/pair_archive.py": "a stream that open_regular opened",
    "capture/supervise.py": "/proc",
    "capture/attach.py": "/proc, and what profkit's own process wrote",
    "execution/injection/hold.py": "runs in the user's interpreter, without profkit",
    "recording/early.py": "the first bytes of an interpreter",
    "capture/watchdog.py": "/proc",
    "capture/process.py": "passes a program its input",
    "execution/slurm.py": "what profkit's own jobs wrote",
    "timeline/trace_json.py": "a stream that open_regular opened",
    "trial/child/__init__.py": "runs in the user's interpreter, without profkit",
    "trial/child/forks.py": "runs in the user's interpreter, without profkit",
    "trial/child/writes.py": "runs in the user's interpreter, without profkit",
    "recompilation/kernel_worker.py": "opens a target",
    "trial/launches/__init__.py": "what a library of profkit's wrote",
    "trial/prepared.py": "what profkit's own child wrote",
    "trial/run.py": "what profkit's own child wrote",
    "capture/doctor.py": "/proc",
    "capture/driver.py": "/proc",
    "callables/transfer.py": "what profkit's own process wrote",
    "timing/turns.py": "lines of profkit's own worker",
    "timing/worker.py": "lines of profkit's own process",
    "capture/backends.py": "sources of profkit itself",
    "recording/recording.py": "the report that it has just recorded",
    "comparison/saved_reports.py": "the copy that it has just written",
}


def _direct_reads(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (
                module,
                name,
            ) in _PARSERS or (module == "yaml" and name in _YAML):
                yield f"{node.lineno}: {module}.{name}"
            case ast.Attribute(value=value, attr="read_text" | "read_bytes" as name) if (
                ast.unparse(value) != "counts"  # how many bytes a kernel reads
            ):
                yield f"{node.lineno}: {name}"
            case ast.Name(id="open") | ast.Attribute(attr="open") if _reads(node):
                yield f"{node.lineno}: open"


def _reads(call: ast.Call) -> bool:
    """Whether a call of `open` may read: its mode is not one that only writes."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="os" | "webbrowser")):
            return False
    modes = [
        argument.value
        for argument in (*call.args, *(word.value for word in call.keywords))
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return not any(mode in {"w", "wb", "a", "x", "r+"} for mode in modes)


def test_nothing_else_reads_files() -> None:
    package = ROOT / "profkit"
    found = {
        name: reads
        for path in package.rglob("*.py")
        if (name := path.relative_to(package).as_posix()) not in _FREE
        and (reads := list(_direct_reads(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == {}
