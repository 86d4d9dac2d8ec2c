"""What README and the pages show is what the commands print, and their examples run."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
import typer
import yaml

from kernels import proof
from kernels.cli_page import cli_page
from kernels.output_blocks import blocks, chosen, filled
from profkit.capture.cuda_source import compile_kernel
from profkit.capture.target import load_target
from profkit.commands.cli import app
from profkit.core.errors import TargetFailed
from tests.capture.test_cuda_source import needs_nvrtc
from tests.conftest import ROOT

DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md"))
}
TEXTS = {
    "README.md": README,
    **{
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md", "reports/README.md")
    },
    **PAGES,
}
WITH_OUTPUT = [name for name, text in TEXTS.items() if blocks(text)]
GUIDES = {name: text for name, text in PAGES.items() if name.startswith("docs/guides/")}
TUTORIAL = {name: text for name, text in PAGES.items() if name.startswith("docs/tutorial/")}
TARGET_PAGE = TUTORIAL["docs/tutorial/write-a-target.md"]
TARGETS = re.findall(r"```python\n(.*?)```", TARGET_PAGE, re.DOTALL)
MOST_WORDS_OF_A_GUIDE = 600  # outside of fenced blocks
MOST_WORDS_TO_READ = 15_000  # tutorial and guides, everything counted
MOST_LINES_OF_README = 130
PICTURE_BY_LINE = 12


@cache
def commands() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize("name", WITH_OUTPUT)
def test_the_output_in_a_page_is_what_its_commands_print(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas", reason="pages show DataFrames")
    monkeypatch.chdir(ROOT)
    assert filled(TEXTS[name]) == TEXTS[name], "run `make docs`"


def test_pages_have_output() -> None:
    assert sum(len(blocks(text)) for text in TEXTS.values()) > 25
    assert len(blocks(README)) == 2


def test_output_in_pages_is_marked() -> None:
    """What looks like output of a command is written by `make docs`, or has no command."""
    for name, text in {"README.md": README, **TUTORIAL, **GUIDES}.items():
        for block in re.findall(r"(?<!-->\n)```console\n(.*?)```", text, re.DOTALL):
            assert all(line.startswith("$ ") for line in block.splitlines()), (name, block)


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        ("", ["a 1", "b 2", "", "c 3", "d 4", "", "e 5"]),
        ("first 2", ["a 1", "b 2", "..."]),
        ("with c", ["...", "c 3", "d 4", "..."]),
        ("with d 1", ["...", "c 3", "..."]),
        ("first 1; from d 3", ["a 1", "...", "d 4", "", "e 5"]),
        ("first 2; with c", ["a 1", "b 2", "", "c 3", "d 4", "..."]),
        ("last 1", ["...", "e 5"]),
    ],
)
def test_a_choice_of_lines(choice: str, shown: list[str]) -> None:
    assert chosen(["a 1", "b 2", "", "c 3", "d 4", "", "e 5"], choice) == shown


def test_a_choice_that_no_line_meets_is_refused() -> None:
    with pytest.raises(ValueError, match="no line meets"):
        chosen(["a"], "with z")


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_short(name: str) -> None:
    prose = re.sub(r"^```.*?^```$|<!--.*?-->", "", GUIDES[name], flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) <= MOST_WORDS_OF_A_GUIDE


def test_tutorial_and_guides_can_be_read() -> None:
    words = sum(len(text.split()) for text in (TUTORIAL | GUIDES).values())
    assert words <= MOST_WORDS_TO_READ


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    lines = README.splitlines()
    assert len(lines) <= MOST_LINES_OF_README
    picture = next(number for number, line in enumerate(lines, 1) if line.startswith("!["))
    assert picture <= PICTURE_BY_LINE


def test_every_verb_has_a_guide_and_is_in_the_readme_or_the_index() -> None:
    index = PAGES["docs/README.md"]
    for verb in commands().commands:
        assert f"docs/guides/{verb}.md" in GUIDES
        assert f"(guides/{verb}.md)" in index


def test_the_page_of_the_command_line_is_that_of_the_commands() -> None:
    assert PAGES["docs/reference/cli.md"] == cli_page(), "run `make docs`"


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    text = re.sub(r"^(```+).*?^\1$", "", TEXTS[name], flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(`+)(?!`).*?\1", "", text)
    for link, anchor in re.findall(r"\]\(([^)\s#]*)(#[^)\s]+)?\)", text):
        if link.startswith(("https://", "http://")):
            continue
        target = (ROOT / name).parent / link if link else ROOT / name
        assert target.exists(), link
        if line := re.fullmatch(r"#L(\d+)", anchor):
            assert int(line[1]) <= target.read_bytes().count(b"\n"), link
        elif anchor:
            assert anchor[1:] in headings(target.read_text(encoding="utf-8")), link + anchor


def headings(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^(```+).*?^\1$", "", page, flags=re.DOTALL | re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if re.match(r"#+ ", line)
    }


def test_the_accuracy_of_the_readme_is_that_of_the_page() -> None:
    page = PAGES["docs/reference/accuracy.md"]
    (figures,) = re.findall(r"^\| profkit \|((?: [^|]+ \|)+)$", page.partition("by kind")[0], re.M)
    total, first, _, factor, _, held, *_ = (cell.strip() for cell in figures.split("|"))
    (row,) = re.findall(r"^\| (\d+) recorded pairs.*?\| (\d+%) \|.*?\| ([\d.]+x) \|", README, re.M)
    assert row == (total, first, factor)
    assert held in README
    picture = (DOCS / "img" / proof.PICTURE).read_text(encoding="utf-8")
    assert f"named first: {first}" in picture
    assert f"estimate and measurement: {factor}" in picture
    assert "public code of others" in picture


def test_the_rates_of_the_guide_are_those_recorded() -> None:
    recorded = json.loads((ROOT / "reports/h200/ceilings.json").read_text(encoding="utf-8"))
    rates = {f"{roof['rate']:.3e}"[:5] for roof in recorded["ceilings"]}
    guide = GUIDES["docs/guides/ceilings.md"]
    shown = re.findall(r"^\| [^|]+ \| ([\d.]+) [TP](?:B|FLOP)/s", guide, re.MULTILINE)
    assert len(shown) == 9
    assert {f"{float(rate):.3e}"[:5] for rate in shown} <= rates


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("the extra `docs` is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    index = json.loads((tmp_path / "search/search_index.json").read_text(encoding="utf-8"))
    assert any("bank conflicts" in page["text"].lower() for page in index["docs"])
    rules = (tmp_path / "reference/rules.html").read_text(encoding="utf-8")
    assert re.search(r"<li>Actions:\s*<ul>\s*<li>", rules)
    for page in tmp_path.rglob("*.html"):
        assert not re.search(r"<(?:script|link|img)[^>]+https?://", page.read_text("utf-8")), page


def command_lines() -> list[str]:
    """Every profkit command that the pages and the verbs' help show, without what a shell does."""
    shown = [
        line
        for text in TEXTS.values()
        for block in re.findall(r"```console\n(.*?)```", text, re.S)
        for line in re.findall(r"^\$ (profkit .*)$", block, re.M)
    ]
    for verb in verbs_below(commands()).values():
        shown += re.findall(r"^\s*(profkit .*)$", verb.help or "", re.M)
    return sorted({shlex.join(words_typed(line)) for line in shown})


def words_typed(line: str) -> list[str]:
    """The words of the first command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), lexer))


def verbs_below(group: Any, name: str = "") -> dict[str, Any]:
    """The verbs of a group, and those of its groups, by what is typed for them."""
    verbs: dict[str, Any] = {}
    for word, verb in group.commands.items():
        if hasattr(verb, "commands"):
            verbs |= verbs_below(verb, f"{name}{word} ")
        else:
            verbs[f"{name}{word}"] = verb
    return verbs


def test_commands_are_shown() -> None:
    assert len(command_lines()) > 90


@pytest.mark.parametrize("line", command_lines())
def test_a_command_that_is_shown_can_be_typed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where it would write
    verb, context = commands(), None
    words = shlex.split(line)[1:]
    while hasattr(verb, "commands") and words and words[0] in verb.commands:
        context = verb.make_context(line, [], parent=context, resilient_parsing=True)
        verb = verb.commands[words.pop(0)]
    if words in (["--install-completion"], ["--help"]):
        return
    # With its group's context, as when it is typed: a verb keeps the names of --help of the first.
    assert verb.make_context(line, words, parent=context).params


def test_the_verbs_without_json_are_those_that_the_readme_names() -> None:
    (sentence,) = re.findall(r"All but (.*?) take `--format json`", README, re.S)
    verbs = verbs_below(commands())
    without = {name for name, verb in verbs.items() if "json" not in formats_of(verb)}
    assert without == {" ".join(name.split()) for name in re.findall(r"`([a-z\s]+)`", sentence)}


def formats_of(verb: Any) -> tuple[object, ...]:
    hint = get_type_hints(verb.callback).get("format")
    return tuple(word for kind in (hint, *get_args(hint)) for word in (kind, *get_args(kind)))


def test_the_page_of_targets_has_its_examples() -> None:
    assert len(TARGETS) == 3


@pytest.mark.parametrize("source", TARGETS[:2], ids=["first", "generic"])
def test_the_targets_of_the_page_pass_their_check_without_a_gpu(
    tmp_path: Path, source: str
) -> None:
    pytest.importorskip("torch", reason="targets need torch")
    script = tmp_path / "example.py"
    script.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), "--check", "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert " passed " in done.stdout


@needs_nvrtc
def test_the_kernel_of_the_page_compiles_and_its_error_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "scale.cu"
    source.write_text(block_of(TARGET_PAGE, "cuda"), encoding="utf-8")
    assert compile_kernel(source, "scale", arch="sm_80", defines={"FACTOR": 2}).cubin
    with pytest.raises(TargetFailed) as error:
        compile_kernel(source, "scale", arch="sm_90a")
    assert str(error.value) == block_of(TARGET_PAGE, "text").rstrip("\n")


def test_the_target_of_the_page_declares_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="targets need torch")
    script = tmp_path / "scale.py"
    script.write_text(TARGETS[2], encoding="utf-8")
    assert [variant.name for variant in load_target(script).variants] == ["torch", "mine"]


def test_the_pair_of_the_page_is_of_the_form_that_pairs_have() -> None:
    form = json.loads((ROOT / "kernels/pairs/pair.schema.json").read_text(encoding="utf-8"))
    page = PAGES["docs/reference/pair-files.md"]
    jsonschema.validate(yaml.safe_load(block_of(page, "yaml")), form)
    for key in form["properties"]:
        assert f"`{key}`" in page


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if "```python\n" in text])
def test_python_in_pages_parses_and_what_it_imports_of_profkit_is_there(name: str) -> None:
    for source in re.findall(r"```python\n(.*?)```", TEXTS[name], re.DOTALL):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("profkit"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, alias.name) for alias in node.names)


def test_the_code_of_the_python_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks without output, in a folder of their own; those with output are filled above."""
    for package in ("matplotlib", "pandas", "torch"):
        pytest.importorskip(package, reason="pages have tables, plots and tensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))
    (tmp_path / "reports").symlink_to(ROOT / "reports")
    pages = [PAGES[f"docs/{folder}/python.md"] for folder in ("tutorial", "guides", "reference")]
    for source in re.findall(r"```python\n(.*?)```", "\n".join(pages), re.DOTALL):
        exec(compile(source, "python.md", "exec"), {})
    written = {path.name for path in tmp_path.iterdir() if path.stat().st_size and path.is_file()}
    written = {name for name in written if not name.endswith(".lock")}
    assert written == {"roofline.svg", "report.html", "softmax.json"}


def test_files_that_pages_name_are_there() -> None:
    folders = "profkit|kernels|targets|tests|reports"
    for name, text in ({"README.md": README} | PAGES).items():
        for path in re.findall(rf"`((?:{folders})/[\w./-]+\.\w+)`", text):
            if not re.search(r"NAME|TIME-ID", path):
                assert (ROOT / path).exists(), (name, path)


def block_of(page: str, language: str) -> str:
    """The only block of a language in a page."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return str(block)
