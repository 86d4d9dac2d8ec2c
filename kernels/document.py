"""Writes pages of the docs: `python -m kernels.document`

Below docs/reference/: methods/ladder.md with its picture and methods/loop.md, from reports/<gpu>/
alone (no GPU is needed), formats.md from the models of the formats, cli.md from the command line
and accuracy.md from the recorded pairs. Then the picture and the table of the README, and the
marked blocks of README and pages (`output_blocks`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from kernels.accuracy_page import accuracy_page
from kernels.attention_archive import complete
from kernels.cli_page import cli_page
from kernels.ladder_page import PICTURE, ladder_page
from kernels.ladder_plot import plot_ladder
from kernels.loop_page import loop_page
from kernels.output_blocks import fill_pages, printed
from kernels.proof import PICTURE as PROOF
from kernels.proof import accuracy_of, plot_proof, score, write_table
from kernels.recorded import LATENCY, profile, timed
from kernels.schemas import FORMATS
from profkit.core.errors import ProfkitError
from profkit.ui.markdown import cell, table

README = Path("README.md")


def document(recordings: Path, docs: Path) -> None:
    """Write the pages of the recordings in a folder, those of the formats, and the command line."""
    ladder, reference = recordings / "ladder", docs / "reference"
    (reference / "methods").mkdir(parents=True, exist_ok=True)
    (reference / "methods" / "ladder.md").write_text(ladder_page(ladder, profile), encoding="utf-8")
    (reference / "methods" / "loop.md").write_text(loop_page(ladder), encoding="utf-8")
    plot_ladder(timed(ladder / LATENCY), reference / "methods" / PICTURE)
    (reference / "cli.md").write_text(cli_page(), encoding="utf-8")
    (reference / "formats.md").write_text(formats_page(), encoding="utf-8")


def formats_page() -> str:
    """docs/reference/formats.md: what writes each format, and its JSON Schema."""
    rows = [
        (f"[{name}](../../profkit/schemas/{name}.json)", cell(title))
        for name, (_, title) in sorted(FORMATS.items())
    ]
    lines = [
        "# Formats",
        "",
        "Each file that profkit writes has a JSON Schema, which the package holds in",
        "`profkit/schemas/`. It comes from the model that writes and reads the file.",
        "",
        *table(("Format", "Written by"), rows),
    ]
    return "\n".join(lines) + "\n"


def refresh(readme: Path, docs: Path) -> None:
    """Write the picture and table of the README, and the output in README and pages."""
    accuracy = accuracy_page(printed("profkit rules score --format markdown"))
    (docs / "reference" / "accuracy.md").write_text(accuracy, encoding="utf-8")
    scored = score()
    plot_proof(scored, docs / "img" / PROOF)
    write_table(readme, accuracy_of(scored["summary"]))
    fill_pages([readme, *sorted(docs.rglob("*.md"))])


def main() -> int:
    """Write the pages where the command line says."""
    parser = argparse.ArgumentParser(description="Write pages of the docs.")
    parser.add_argument("--reports", type=Path, default=Path("reports/h200"), metavar="DIR")
    parser.add_argument("--docs", type=Path, default=Path("docs"), metavar="DIR")
    parser.add_argument("--blocks", action="store_true", help="only the output in the pages")
    asked = parser.parse_args()
    try:
        if asked.blocks:
            fill_pages([README, *sorted(asked.docs.rglob("*.md"))])
            return 0
        with tempfile.TemporaryDirectory(prefix="profkit-") as scratch:
            recordings = Path(scratch) / "reports" / asked.reports.name
            complete(asked.reports, recordings)
            document(recordings, asked.docs)
        refresh(README, asked.docs)
    except ProfkitError as error:
        print(f"profkit: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
