"""Documents: marks, and text that no renderer takes for its own."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from profkit.ui.document import (
    Bullets,
    Document,
    Figure,
    Heading,
    Paragraph,
    Span,
    Style,
    Table,
    spans,
    unmarked,
    verbatim,
)
from profkit.ui.document_formats import document_html, document_latex, document_markdown

ODD = st.text(alphabet=st.sampled_from("ab <>&|`*_[]()\\{}$%#~^\"'µ×−\n\x1b"), max_size=30)


def test_marks_are_code_strong_and_links() -> None:
    told = list(spans("a `b*c` **d** [e](https://x.y/z) 2 * 3"))
    assert told == [
        Span("a "), Span("b*c", Style.code), Span(" "), Span("d", Style.strong), Span(" "),
        Span("e", Style.link, "https://x.y/z"), Span(" 2 * 3"),
    ]  # fmt: skip


@given(ODD)
def test_text_of_others_has_no_marks(text: str) -> None:
    assert all(span.style is Style.plain for span in spans(unmarked(text)))
    (code,) = spans(verbatim(text))
    assert code.style is Style.code


class Text(HTMLParser):
    """The tags of a page below its style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page[page.index("<body>") :])

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


@given(ODD)
def test_no_text_changes_the_structure(text: str) -> None:
    def page(words: str) -> Document:
        table = Table("", ("x", "y"), ((unmarked(words), verbatim(words)),))
        return Document("t", (Heading(1, "t"), Paragraph(unmarked(words)), Bullets(("a",)), table))

    plain = page("z")
    assert Text(document_html(page(text))).tags == Text(document_html(plain)).tags
    markdown = document_markdown(page(text), "d").splitlines()
    assert len([line for line in markdown if line.startswith("| ")]) == 3
    latex = document_latex(page(text), "d")
    assert latex.count("\\end{document}") == 1
    body = latex.split("\\begin{document}")[1]
    assert body.count("{") - body.count("\\{") == body.count("}") - body.count("\\}")


def test_latex_breaks_long_names_takes_brackets_and_has_a_glyph_for_all() -> None:
    table = Table("", ("Kernel", "Time"), (("[a]", verbatim("flash_fwd_kernel")), ("Ħ é", "1")), 2)
    text = document_latex(Document("x", (table,)), "drawings")
    assert "flash\\_\\allowbreak{}fwd\\_\\allowbreak{}kernel" in text
    assert "[a] &" in text
    assert "\\\\\n[" not in text  # where a bracket would be the length of a gap
    assert "U+0126 é" in text


def test_long_tables_are_folded_and_the_first_figure_is_in_the_summary() -> None:
    rows = tuple((str(number), "x") for number in range(13))
    figure = Figure("f.svg", "A drawing. More.", "<svg/>")
    blocks = (
        Heading(1, "Title"),
        Heading(2, "Summary"),
        Heading(2, "Numbers"),
        Table("Short", ("A", "B"), rows[:12]),
        Table("Long", ("A", "B"), rows),
        figure,
    )
    text = document_html(Document("Title", blocks))
    assert text.index('id="summary"') < text.index("<figure") < text.index('id="numbers"')
    assert text.count("<details>") == 1
    assert text.index("<caption>Short") < text.index("<details>") < text.index("Long: 13 rows")
