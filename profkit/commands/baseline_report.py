"""`profkit baseline report`: a baseline as a report that can be handed on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from profkit.commands.options import output_option, put
from profkit.core.errors import UsageError
from profkit.core.extras import require
from profkit.core.file_name import file_name
from profkit.ui.progress import Teller

if TYPE_CHECKING:
    from profkit.ui.document import Document


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A baseline's folder.")],
    format: Annotated[
        Literal["markdown", "html", "latex"] | None,
        typer.Option("--format", help="How to write it; by the file's name, else Markdown."),
    ] = None,
    output: Annotated[
        Path | None, output_option("Write to a file, drawings into a folder beside it.")
    ] = None,
    price: Annotated[
        float | None, typer.Option(min=0, metavar="$", help="What an hour of the GPU costs.")
    ] = None,
    ablation: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="A recording of variants that took turns, for the ablation table."
        ),
    ] = None,
) -> None:
    """Write a report of a baseline: claims, statistics, performance, what must be beaten, methods.

    The same data give the same report, byte for byte. Markdown and LaTeX have their drawings in
    a folder beside the file, HTML has them inside.

    Examples:

      profkit baseline report reports/baseline/sdpa_sweep -o baseline.html

      profkit baseline report DIR --price 3.5 --ablation reports/h200/ladder -o report.md
    """  # fmt: skip
    from profkit.study.report import gather
    from profkit.study.report_document import report_document, report_text

    require("baseline report", "matplotlib")
    form = format or "markdown"
    with Teller() as teller:
        teller.tell("read the baseline", "")
        told = gather(folder, price=price, ladder=ablation)
        teller.tell("write the report", "")
        document = report_document(told)
    drawings = f"{file_name(output.stem, '._', '-')}-drawings" if output else "drawings"
    put(report_text(document, form, drawings), output)
    if output is not None and form != "html":
        _draw(document, output.with_name(drawings))


def _draw(document: Document, folder: Path) -> None:
    """Write the drawings; raises UsageError where they can't be."""
    try:
        folder.mkdir(exist_ok=True)
        for name, svg in document.drawings.items():
            (folder / name).write_text(svg, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder}: can't be written ({error.strerror})") from None
