"""Writes pages of the docs: `python -m kernels.document`

docs/ladder.md with its picture and docs/pairs.md from reports/<gpu>/ alone, no GPU is needed, and
docs/schemas/ from the models of the formats.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernels.ladder_page import PICTURE, ladder_page
from kernels.ladder_plot import plot_ladder
from kernels.pairs_page import pairs_page
from kernels.recorded import LATENCY, profile, timed
from kernels.schemas_pages import schemas_pages
from profkit.core.errors import ProfkitError


def document(recordings: Path, docs: Path) -> None:
    """Write the pages of the recordings in a folder, and those of the formats."""
    ladder = recordings / "ladder"
    (docs / "ladder.md").write_text(ladder_page(ladder, profile), encoding="utf-8")
    plot_ladder(timed(ladder / LATENCY), docs / PICTURE)
    (docs / "pairs.md").write_text(pairs_page(recordings / "pairs", profile), encoding="utf-8")
    (docs / "schemas").mkdir(exist_ok=True)
    for name, text in schemas_pages().items():
        (docs / "schemas" / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Write the pages where the command line says."""
    parser = argparse.ArgumentParser(description="Write the pages of the recordings.")
    parser.add_argument("--reports", type=Path, default=Path("reports/h200"), metavar="DIR")
    parser.add_argument("--docs", type=Path, default=Path("docs"), metavar="DIR")
    asked = parser.parse_args()
    try:
        document(asked.reports, asked.docs)
    except ProfkitError as error:
        print(f"profkit: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
