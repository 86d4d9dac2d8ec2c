"""Documents: marks, and text that no renderer takes for its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.ui.document import (
    Document,
    Facts,
    Figure,
    Heading,
    Next,
    Paragraph,
    Row,
    Span,
    Style,
    Table,
    bullets,
    code,
    marked,
    spans,
    unmarked,
    verbatim,
)
from profkit.ui.html import document_html
from profkit.ui.markdown import document_markdown
from profkit.ui.terminal import document_terminal
from tests.html_page import HtmlPage

ODD = st.text(alphabet=st.sampled_from("ab <>&|`*_[]()\\{}$%#~^\"'µ×−\n\x1b"), max_size=30)


def test_marks_are_code_strong_and_links() -> None:
    told = list(spans(marked("a `b*c` **d** [e](https://x.y/z) 2 * 3")))
    assert told == [
        Span("a "), Span("b*c", Style.code), Span(" "), Span("d", Style.strong), Span(" "),
        Span("e", Style.link, "https://x.y/z"), Span(" 2 * 3"),
    ]  # fmt: skip


@given(ODD)
def test_text_of_others_has_no_marks(text: str) -> None:
    assert all(span.style is Style.plain for span in spans(marked(unmarked(text))))
    (code,) = spans(marked(verbatim(text)))
    assert code.style is Style.code


def tags(page: str) -> list[str]:
    """The tags of a page below its style, but for breaks: text may have lines."""
    return [name for name in HtmlPage(page[page.index("<body>") :]).names if name != "br"]


@given(ODD)
def test_no_text_changes_the_structure(text: str) -> None:
    def page(words: str) -> Document:
        table = Table("", ("x", "y"), ((words, code(words)),))
        return Document("t", (Heading("t", 1), Paragraph(words), bullets(("a",)), table))

    plain = page("z")
    assert tags(document_html(page(text))) == tags(document_html(plain))
    markdown = document_markdown(page(text), "d").splitlines()
    assert len([line for line in markdown if line.startswith("| ")]) == 2


def test_long_tables_are_folded_and_a_figure_has_its_first_sentence() -> None:
    rows = tuple((str(number), "x") for number in range(13))
    figure = Figure("f.svg", "A drawing. More.", "<svg/>")
    blocks = (
        Heading("Title", 1),
        Heading("Summary"),
        Heading("Numbers"),
        Table("", ("A", "B"), rows[:12], caption="Short"),
        Table("", ("A", "B"), rows, caption="Long"),
        figure,
    )
    text = document_html(Document("Title", blocks))
    assert text.count("<details>") == 1
    assert text.index("<caption>Short") < text.index("<details>") < text.index("Long: 13 rows")


def test_a_long_kernel_s_name_leaves_numbers_beside_it_in_view() -> None:
    name = "at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<at_cuda_detail>"
    library = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma"
    rows = ((code(name), "1.257"), (code(library), "0.785"), (code("f32_t"), "0.001"))
    text = document_html(Document("Title", (Table("Parts", ("Part", "ms"), rows, words=1),)))
    assert "gemm_<wbr>f32f32_<wbr>" in text
    assert "<code>f32_t</code>" in text
    assert "radix_sort::<wbr>DeviceRadixSortOnesweepKernel&lt;at_cuda_detail&gt;" in text


def test_a_long_command_stays_on_its_line() -> None:
    command = f"profkit analyze {'x' * 200}"
    document = Document("Title", (Heading("Title", 1), Next((command,))))
    assert f"{command}\n" in document_terminal(document, to_file=True)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("one", "- label: one"),
        ("- one", "- label: one"),
        ("one\ntwo", "- label:\n  - one\n  - two"),
        ("- one\n- two", "- label:\n  - one\n  - two"),
        ("head:\n- one\n- two", "- label: head:\n  - one\n  - two"),
    ],
)
def test_a_value_of_several_lines_is_a_list_in_markdown(value: str, shown: str) -> None:
    facts = Facts("", (Row("label", value),))
    assert document_markdown(Document("", (facts,))).strip() == shown
