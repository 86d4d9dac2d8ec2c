"""The pages of the formats are those that `make docs` writes."""

from __future__ import annotations

from kernels.schemas_pages import schemas_pages
from tests.conftest import ROOT


def test_each_format_has_its_page() -> None:
    folder = ROOT / "docs" / "reference" / "schemas"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert written == schemas_pages()
