"""What no text of a report, a file's name or a library makes a terminal do."""

from __future__ import annotations

import io
import re
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.commands.options import put, say, warn
from profkit.core.errors import BadInput
from profkit.ui import document as doc
from profkit.ui.html import document_html
from profkit.ui.markdown import document_markdown
from profkit.ui.progress import stage_progress
from profkit.ui.terminal import document_terminal
from tests.conftest import Cli

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
HOSTILE = (
    "a\x1b]0;owned\x07 \x1b[31mred\x1b[0m \x9b2J\x00\r\x08\x7f"
    "\u202ekcab\u2066\u200b\u2028\ufeff\x85"
)
TEXT = st.text(max_size=40) | st.text(st.sampled_from(HOSTILE + "\n\t \ud800[]:/`|"), max_size=40)


def controls(text: str) -> set[str]:
    """The characters of a text that no terminal shows, but for line ends."""
    return {each for each in text if unicodedata.category(each) in HIDDEN} - {"\n"}


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@given(TEXT)
def test_what_goes_to_stderr_is_one_line_without_controls(text: str) -> None:
    for write in (say, warn, lambda text: warn(BadInput(text, text))):
        with redirect_stderr(io.StringIO()) as stream:
            write(text)
        assert not controls(stream.getvalue())
        assert stream.getvalue().count("\n") == 1


@given(TEXT)
def test_what_goes_to_stdout_or_a_file_has_no_controls(text: str) -> None:
    with redirect_stdout(io.StringIO()) as stream:
        put(text, None)
    assert not controls(stream.getvalue())


@given(TEXT)
def test_progress_has_its_own_controls_alone(text: str) -> None:
    with redirect_stderr(Terminal()) as stream, stage_progress() as show:
        show(text, text)
    assert not controls(stream.getvalue().replace("\r\x1b[K", ""))
    assert "\n" not in stream.getvalue()
    with redirect_stderr(io.StringIO()) as piped, stage_progress() as show:
        show(text, text)
    assert not controls(piped.getvalue())


def everything(text: str) -> doc.Document:
    """A document with a text in each place of each block."""
    row = doc.Row(text, text, text, 0.5)
    item = doc.Item(text, (row,), (text, doc.code(text)), text)
    return doc.Document(
        text,
        (
            doc.Heading(text, 1, text), doc.Heading(text, 2, text), doc.Paragraph(text),
            doc.Lines((text, doc.quiet(text)), gap=True), doc.bullets((text,), boxes=True),
            doc.Items((item,), numbered=True), doc.Items((item,), apart=True),
            doc.Table(text, (text, "b"), ((text, text),), text, 1, text, legend=((text, text),)),
            doc.Table(text, (text,), ((text,),), names=(text,)),
            doc.Facts(text, (row, doc.Row(text, text, text)), text), doc.Facts("", (row,)),
            doc.Facts(text, (row,), text, wide=True), doc.Code(text), doc.Note(text),
            doc.Next((text,), (text,)), doc.Next((text,)),
            doc.Badges((doc.Badge("x.svg", text, text, "#fff", ""),)),
            doc.Fold(text, (doc.Paragraph(text),)),
        ),
    )  # fmt: skip


@given(TEXT)
def test_a_document_has_no_controls(text: str) -> None:
    made = everything(text)
    assert not controls(document_terminal(made, to_file=True))
    assert not controls(document_markdown(made))
    with redirect_stdout(io.StringIO()) as stream:
        put(document_html(made), None)
    assert not controls(stream.getvalue())


@given(TEXT)
def test_a_terminal_gets_colors_alone(text: str) -> None:

    with pytest.MonkeyPatch.context() as patch:
        terminal = Terminal()
        patch.setattr(sys, "stdout", terminal)
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("NO_COLOR", raising=False)
        put(document_terminal(everything(text), to_file=False), None)
        shown = terminal.getvalue()
    assert not controls(COLOR.sub("", shown))
    styles = {style for style in COLOR.findall(shown) if style not in STYLES}
    assert not styles  # none of the text's


COLOR = re.compile(r"\x1b\[[\d;]*m")
STYLES = {f"\x1b[{words}m" for words in ("0", "1", "2", "32", "31", "33", "36", "2;1", "1;2")}


def test_names_of_files_are_shown_and_not_obeyed(tmp_path: Path, profkit_cli: Cli) -> None:
    name = "x\x1b[2J\x07\u202e\ntwo.ncu-rep"
    for file, content in ((tmp_path / name, b"NVR\0junk"), (tmp_path / f"absent {name}", None)):
        if content:
            file.write_bytes(content)
        for verb in ("analyze", "checklist", "timeline", "report"):
            failed = profkit_cli(verb, file, status=None)
            assert failed.exit_code
            assert not controls(failed.output)
            assert len(failed.stderr.splitlines()) == 1
            assert "\\x1b[2J\\x07\\u202e" in failed.stderr
    wrong = profkit_cli("analyze", "x", "--sort\x1b[2J", "\x07", status=2)
    assert not controls(wrong.output)
