"""The report page: one HTML file that holds its styles, scripts and data, and asks for nothing.

A Content-Security-Policy forbids the network and all scripts but the page's own, named by
hash. Text from reports is escaped by the templates; data goes in as JSON that can't end its
element.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.text_files import shipped_text
from profkit.page import charts
from profkit.ui.template import templates
from profkit.ui.text import count, extent, literal, number, percent, plural

if TYPE_CHECKING:
    from jinja2 import Environment

_CHARTS = "echarts.common.min.js"
_HARMLESS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_FILTERS: Mapping[str, Callable[..., Any]] = {
    "count": count,
    "extent": extent,
    "file_name": lambda path: Path(path).name,
    "levels": charts.levels,
    "literal": literal,
    "number": number,
    "percent": percent,
    "plural": plural,
    "precisions": charts.precisions,
    "product": math.prod,
    "steady_rates": charts.steady_rates,
    "working": charts.working,
}


def render_page(page: Mapping[str, Any]) -> str:
    """The page of what `data.page_data` made, as one HTML document."""
    scripts = [_text(name) for name in ("theme.js", _CHARTS, "charts.js", "page.js")]
    first, *others = scripts
    page = dict(page) | {
        "policy": _policy(scripts),
        "style": _text("page.css"),
        "theme_script": first,
        "scripts": others,
        "data": embedded(page["charts"]),
    }
    return page_templates().get_template("page.html.j2").render(page).removesuffix("\n")


@cache
def page_templates() -> Environment:
    """The page's templates."""
    return templates("profkit.page", _FILTERS)


def embedded(data: Any) -> str:
    """JSON that may stand inside a script element: nothing in it ends that or begins another.

    Raises ValueError for NaN, which JSON has no word for.
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_HARMLESS)


def _policy(scripts: list[str]) -> str:
    """Nothing from anywhere; scripts only those of these texts."""
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _text(name: str) -> str:
    return shipped_text("profkit.page", f"assets/{name}")
