"""Templates of HTML pages that need nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from profkit.core.text_files import shipped_text
from profkit.ui.text import literal

if TYPE_CHECKING:
    from jinja2 import Environment

_HARMLESS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def templates(package: str, filters: Mapping[str, Callable[..., Any]] | None = None) -> Environment:
    """The templates of a package: what they show is escaped, its control characters spelled out."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: shipped_text(package, f"templates/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters or {}
    return environment


def embedded(data: Any) -> str:
    """JSON for a script element: no text in it can end the element or begin another.

    Raises ValueError for NaN, which JSON can't express.
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_HARMLESS)


def content_policy(scripts: Iterable[str]) -> str:
    """A Content-Security-Policy that allows these inline scripts and loads nothing."""
    return (
        f"default-src 'none'; script-src {script_hashes(scripts)}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def script_hashes(scripts: Iterable[str]) -> str:
    """Inline scripts as a Content-Security-Policy lists them."""
    return " ".join(f"'sha256-{_hash(script)}'" for script in scripts)


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _shown(value: Any) -> Any:
    """Text line by line; what is HTML already, and what is no text, as it is."""
    return "\n".join(map(literal, value.split("\n"))) if type(value) is str else value
