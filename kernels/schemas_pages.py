"""Pages of the JSON Schemas: what each file that profkit writes holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from profkit.schemas.__main__ import texts
from profkit.ui.markdown import cell, code, escape, table

Schema = Mapping[str, Any]

_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def schemas_pages() -> Mapping[str, str]:
    """Markdown by the name of its file: an index, and a page a format."""
    schemas = {name.removesuffix(".json"): json.loads(text) for name, text in texts().items()}
    rows = [(f"[{name}]({name}.md)", cell(form["title"])) for name, form in sorted(schemas.items())]
    lines = [
        "# Formats",
        "",
        "Every file that profkit writes has a JSON Schema in `profkit/schemas/`, made of the model",
        "that reads and writes it. `make docs` writes these pages.",
        "",
        *table(("Format", "Written by"), rows),
    ]
    index = {"README.md": "\n".join(lines) + "\n"}
    return index | {f"{name}.md": _page(name, form) for name, form in schemas.items()}


def _page(name: str, form: Schema) -> str:
    lines = [
        f"# {escape(form['title'])}",
        "",
        f"[JSON Schema](../../../profkit/schemas/{name}.json)",
    ]
    lines += [line for whole in form.get("oneOf", [form]) for line in _fields(whole)]
    for part, content in form.get("$defs", {}).items():
        lines += ["", f"## {escape(part)}", *_fields(content)]
    return "\n".join(lines) + "\n"


def _fields(form: Schema) -> Iterator[str]:
    if description := form.get("description"):
        yield from ("", description)
    if properties := form.get("properties"):
        required = form.get("required", ())
        rows = [
            (code(key, in_table=True), _kind(value), "" if key in required else "optional")
            for key, value in properties.items()
        ]
        yield from ("", *table(("Field", "Value", ""), rows))
    elif "properties" not in form:
        yield from ("", _kind(form))


def _kind(form: Schema) -> str:
    """What a value may be, in a few words."""
    if target := form.get("$ref"):
        name = str(target).rpartition("/")[2]
        return f"[{escape(name)}](#{name.lower().replace('.', '')})"
    if "enum" in form:
        return ", ".join(code(json.dumps(value), in_table=True) for value in form["enum"])
    if choices := form.get("anyOf") or form.get("oneOf"):
        return " or ".join(map(_kind, choices))
    kinds = form.get("type", "any value")
    words = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    if form.get("items"):
        words = f"{words} of {_kind(form['items'])}"
    if isinstance(values := form.get("additionalProperties"), dict) and values:
        words = f"{words} of {_kind(values)}"
    limits = [f"{sign} {form[key]:g}" for key, sign in _LIMITS.items() if key in form]
    return ", ".join([words, *limits])
