"""The written forms of a comparison, read back by readers that profkit did not write."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from markdown_it import MarkdownIt
from msgspec import structs

import profkit
from profkit.commands.diff import ComparisonFormat
from profkit.comparison.annotations import Sources
from profkit.comparison.comparison import Diff, diff
from profkit.comparison.gates import Failure, failures, parse_gates
from profkit.comparison.matching import Mode
from profkit.comparison.result import Comparisons, Judged
from profkit.comparison.view import MARKER, MOST, diff_text
from profkit.core.errors import EnvironmentProblem
from tests.comparing import Made, compared, report_of, side_of, work
from tests.conftest import ROOT, needs_reader
from tests.html_page import HtmlPage

AWKWARD = (
    "void <script>alert('x')</script>(a|b, c\\|d, `e`, ``f``)",
    "::error file=a,line=1::50%, done\r\n::set-output name=x::y",
    "a\x00b\x1b[31m\x08c\u202e]]>&amp;\ufffe\ud800",
    "| @everyone #1 ![](http://a) [b](c) <!-- --> </details> *d* _e_",
)
FORMATS = [form for form in get_args(ComparisonFormat) if form != "terminal"]
SOURCE = "reports/h200/pairs/transpose_conflicts"


def awkward() -> Diff:
    """Kernels of awkward names that got slower, did not change, went and came."""
    first, second, third, fourth = AWKWARD
    return compared(
        [Made(first, [1e-4]), Made(second, [1e-4]), Made(third, [1e-5], work(1))],
        [Made(first, [2e-4]), Made(second, [1e-4]), Made(fourth, [1e-5] * 2, work(3))],
    )


@cache
def regressed() -> Diff:
    """A recorded pair turned round: bank conflicts are new, and the line is known."""
    before, after = (profkit.load(ROOT / SOURCE / f"{one}.ncu-repz") for one in ("after", "before"))
    sides = [
        structs.replace(side_of(side.summary), checklist=side.checklist())
        for side in (before, after)
    ]
    return diff(sides[0], sides[1])


@cache
def unmatched() -> Diff:
    """Reports without a kernel in common."""
    sides = [side_of(report_of(Made(f"{at}_abc", [1e-4], work(at)))) for at in (1, 7)]
    return diff(sides[0], sides[1], mode=Mode.name)


@cache
def refused() -> Diff:
    report = report_of(Made("k", [1e-4]))
    other = structs.replace(report, session=structs.replace(report.session, cache_control="none"))
    return diff(side_of(report), side_of(other))


def failed(found: Diff, gates: str = "regression,removed,new-finding") -> tuple[Failure, ...]:
    return failures(found, parse_gates([gates] if gates else []))


def written(
    format: str, *diffs: Diff, gates: str = "regression,removed,new-finding", **how: Any
) -> str:
    judged = [
        Judged(f"before {at} → after|`{at}`", found, failed(found, gates))
        for at, found in enumerate(diffs)
    ]
    options = {"top": 3, "show_all": False, "with_host": False, **how}
    return diff_text(Comparisons(judged, **options), format)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_writes_every_comparison(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    empty = compared([Made("gone", [1e-4])], [Made("new", [math.nan])])
    several = compared([Made("k", [1e-4])], [Made("k", [1e-4] * 7)])
    for diffs in ((awkward(), refused()), (regressed(),), (empty, several)):
        text = written(format, *diffs, top=0, show_all=True)
        assert text.endswith("\n")
        text.encode("utf-8")
        assert not set(map(chr, range(32))) - {"\n"} & set(text)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("gates", ["", "regression:5%,new-finding"])
@pytest.mark.parametrize("found", [unmatched, refused])
def test_no_format_passes_what_was_not_compared(
    format: str, gates: str, found: Callable[[], Diff], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    text = written(format, found(), gates=gates)
    assert str(found().obstacles[0]) in html.unescape(text) or format == "json"
    assert not re.search(r"\dx (faster|slower)", text)
    match format:
        case "json":
            (comparison,) = json.loads(text)["comparisons"]
            assert comparison["refused"]
            assert comparison["total"]["speedup"] is None
            assert len(comparison["failures"]) == len(parse_gates([gates] if gates else []))
            assert all(one["undecided"] for one in comparison["failures"])
        case "github":
            assert text.startswith("::error ")


# --- JSON


@needs_reader
def test_json_has_everything_and_keeps_its_schema() -> None:
    schema = json.loads((ROOT / "profkit/schemas/diff.json").read_text(encoding="utf-8"))
    checker = jsonschema.Draft202012Validator(schema)
    checker.check_schema(schema)
    for found in (awkward(), regressed(), refused(), unmatched()):
        checker.validate(json.loads(written("json", found, found)))
    data = json.loads(written("json", regressed()))
    assert data["schema"] == "profkit.diff/1"
    (comparison,) = data["comparisons"]
    (kernel,) = comparison["kernels"]
    assert (kernel["verdict"], kernel["by"]) == ("REGRESSED", "ncu")
    causes = kernel["attribution"]["causes"]
    change = kernel["after"]["median_s"] - kernel["before"]["median_s"]
    assert sum(cause["seconds"] for cause in causes) == pytest.approx(change, rel=1e-9)
    new = {one["category"]: one for one in kernel["findings"]}["shared_bank_conflicts"]
    assert (new["status"], new["before"]) == ("new", None)
    where = new["after"]["where"][0]
    assert (where["file"], where["line"]) == ("before.cu", 25)
    assert 0.5 < where["share"] <= 1
    assert {one["kind"] for one in comparison["failures"]} == {"regression", "new-finding"}
    assert comparison["counts"]["REGRESSED"] == 1


def test_json_has_every_kernel_and_names_as_they_are() -> None:
    (comparison,) = json.loads(written("json", awkward(), top=1))["comparisons"]
    assert [kernel["name"] for kernel in comparison["kernels"]] == list(AWKWARD[:2])
    assert [group["name"] for group in comparison["removed"]] == [AWKWARD[2]]
    assert [group["name"] for group in comparison["added"]] == [AWKWARD[3]]


def test_paths_are_without_the_host_unless_asked() -> None:
    for form in FORMATS:
        assert str(ROOT) not in written(form, regressed())
    (comparison,) = json.loads(written("json", regressed(), with_host=True))["comparisons"]
    assert comparison["after"]["file"] == str(ROOT / SOURCE / "before.ncu-repz")


# --- Markdown


def cells(markdown: str) -> list[list[str]]:
    """The text of the rows of all tables, as a Markdown reader has them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows and token.level >= 3:
            rows[-1].append("".join(child.content for child in token.children or ()))
    return rows


def test_markdown_begins_with_its_marker_and_folds_details() -> None:
    text = written("markdown", regressed())
    assert text.splitlines()[0] == MARKER == "<!-- profkit-diff -->"
    assert re.search(r"<details><summary>transpose .*x slower", text)
    assert text.index("gates failed") < text.index("<details>")
    assert text.count("<details>") == text.count("</details>") == 1
    rows = cells(written("markdown", regressed(), awkward(), top=1))
    assert ["Kernel", "Before → after", "Change", "Cause, current limiter"] in rows


def test_markdown_shows_awkward_names_as_text() -> None:
    text = written("markdown", awkward())
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    shown = [child for token in tokens for child in token.children or ()]
    assert not [one for one in shown if one.type in {"link_open", "image", "html_inline"}]
    blocks = [token.content for token in tokens if token.type == "html_block"]
    tags = re.findall(r"<[^>]*>", "".join(blocks).replace(MARKER, ""))
    assert set(tags) == {"<details>", "<summary>", "</summary>", "</details>"}
    assert not re.search(r"(?<!`)@everyone", re.sub(r"`[^`]*`", "", text))
    assert "<script>alert('x')</script>(a|b, c\\|d, `e`, ``f``)" in html.unescape(text)
    assert AWKWARD[3] in {cell for row in cells(text) for cell in row}


def test_a_comment_that_is_too_long_has_no_details() -> None:
    names = [f"void kernel_{at}<float, {at}>(float const *, float *)" for at in range(300)]
    before = [Made(name, [1e-4]) for name in names]
    after = [Made(name, [1e-4 if at % 3 else 2e-4]) for at, name in enumerate(names)]
    text = written("markdown", compared(before, after), top=0, show_all=True)
    assert len(text) <= MOST
    assert "Details of kernels are left out" in text
    assert text.count("<details>") == text.count("</details>") == 0
    assert {f"kernel_{at}<" for at in range(300)} <= set(re.findall(r"kernel_\d+<", text))


# --- HTML


def test_html_needs_nothing_else_and_runs_nothing() -> None:
    page = HtmlPage(written("html", awkward(), regressed(), refused(), top=0, show_all=True))
    assert not {"script", "link", "img", "iframe"} & set(page.names)
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {"src", "onclick", "onload"} & names
    assert all(str(how.get("href", "#")).startswith("#") for _, how in page.tags)
    assert "<script>alert('x')</script>(a|b, c\\|d, `e`, ``f``)" in page.text
    assert "url(" not in page.text
    assert "prefers-color-scheme: dark" in page.text
    assert "cache control: all vs. none" in page.text


# --- GitHub


_COMMAND = re.compile(r"::(error|warning|notice) ([^:\r\n]*)::([^\r\n]*)")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Workflow commands as the runner reads them: a line each, properties and then data decoded."""
    found = []
    for line in text.splitlines():
        match = _COMMAND.fullmatch(line)
        assert match, line
        pairs = (part.split("=", 1) for part in match[2].split(","))
        properties = {name: _decoded(value, ("%3A", ":"), ("%2C", ",")) for name, value in pairs}
        found.append((match[1], properties, _decoded(match[3])))
    return found


def _decoded(text: str, *more: tuple[str, str]) -> str:
    for code, character in (*more, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, character)
    return text


@needs_reader
def test_github_annotates_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    first, *others, notice = commands(written("github", regressed()))
    for level, properties, _ in (first, *others):
        assert level == "error"
        assert properties["file"] == "kernels/pairs/transpose_conflicts/before.cu"
        assert properties["line"] == "25"
    assert first[1]["title"] == "profkit: regression"
    assert "slower" in first[2]
    assert notice[2].startswith("transpose   ")
    (warning, *_) = commands(written("github", regressed(), gates=""))
    assert warning[0] == "warning"
    assert warning[1]["title"] == "profkit: shared_bank_conflicts"


def test_github_commands_hold_awkward_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    found = commands(written("github", awkward(), refused(), gates="regression:1%,removed"))
    assert [level for level, _, _ in found] == ["error", "error", "notice", "error"]
    assert AWKWARD[0] in found[0][2]
    assert found[0][1]["title"] == "profkit: regression:1%"
    assert "a\\x00b" in found[1][2]


def test_github_appends_the_step_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    written("github", regressed())
    assert summary.read_text(encoding="utf-8") == "before\n" + written("markdown", regressed())
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="can't be written"):
        written("github", regressed())


# --- files of a repository


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/build/host/project/kernels/a.cu", "kernels/a.cu"),
        ("C:\\work\\project\\kernels\\a.cu", "kernels/a.cu"),
        ("kernels/a.cu", "kernels/a.cu"),
        ("/build/host/include/absent.cuh", "absent.cuh"),
        ("../../kernels/a.cu", "kernels/a.cu"),
        ("x" * 5000 + "/a.cu", "a.cu"),
        ("\0", "\0"),
    ],
)
def test_a_compilers_path_is_found_below_the_repository(
    tmp_path: Path, path: str, shown: str
) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.cu").write_text("", encoding="utf-8")
    assert Sources(tmp_path, with_host=False).named(path) == shown


def test_a_path_that_is_not_of_the_repository_is_kept_where_asked(tmp_path: Path) -> None:
    absent = "/build/host/include/absent.cuh"
    assert Sources(tmp_path, with_host=True).named(absent) == absent
