"""`profkit report`: everything of a report or run on one page, for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.options import DisableOption, KernelOption, RulesOption, output_option, put

if TYPE_CHECKING:
    from profkit.commands.reading import Advice

_DEFAULT = Path("report.html")
_TOP = 12


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE", help="A run's folder, or a report (.ncu-rep, .ncu-repz)."
        ),
    ],
    output: Annotated[Path, output_option("Where to write the page.")] = _DEFAULT,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    kernel: KernelOption = None,
    top: Annotated[
        int, typer.Option(min=0, metavar="N", help="Kernels to show in detail, 0 for all.")
    ] = _TOP,
    rules: RulesOption = None,
    disable: DisableOption = None,
    with_host: Annotated[
        bool,
        typer.Option("--with-host", help="Keep computer name, paths and the whole command line."),
    ] = False,
) -> None:
    """Write everything of a report or run as one HTML file, which needs no network.

    What limits and what a fix would give, verdicts on timed variants, the checklist to tick, all
    kernels, a roofline, each kernel's life and its source, environment and provenance.

    Examples:

      profkit report reports/h200/sdpa_s512 --open

      profkit report run.ncu-rep -o run.html --kernel flash
    """
    from profkit.commands.advice import chosen

    html = page_of(path, kernel, None, top, chosen(rules, disable or (), None), with_host=with_host)
    put(html, output)
    typer.echo(f"{output}  {len(html.encode()) / 1e6:.1f} MB", err=True)
    if open_it:
        _open(output)


def page_of(
    path: Path,
    kernel: str | None,
    nvtx: str | None,
    top: int,
    advice: Advice,
    *,
    with_host: bool,
    sort: str = "time",
) -> str:
    """The page of the report that a path names, its kernels sorted as `analyze` does."""
    from profkit.commands.order import order
    from profkit.commands.reading import read_report
    from profkit.page.page import page_html

    read = read_report(path, kernel, nvtx)
    found = read.checklist(advice.rules, advice.disabled, advice.blamed)
    groups = order(read.summary, sort)
    return page_html(read, found, groups=groups, top=top, with_host=with_host)


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.absolute().as_uri()):
        typer.echo(f"profkit: no browser could be started; open {page} in one", err=True)
