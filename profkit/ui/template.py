"""Templates of HTML pages that need nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from profkit.core.text_files import shipped_text
from profkit.ui.text import literal

if TYPE_CHECKING:
    from jinja2 import Environment


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


def _shown(value: Any) -> Any:
    """Text line by line; what is HTML already, and what is no text, as it is."""
    return "\n".join(map(literal, value.split("\n"))) if type(value) is str else value
