"""Writes the schemas of the formats that have a model: `python -m profkit.schemas`"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profkit.core.typed_file import json_schema
from profkit.schemas.formats import formats

_WIDTH = 96


def texts() -> Mapping[str, str]:
    """The schemas by the name of their file."""
    return {
        f"{name}.json": _laid_out(json_schema(model, title)) + "\n"
        for name, (model, title) in formats().items()
    }


def _laid_out(value: Any, margin: str = "") -> str:
    """JSON on one line where it fits, else an entry a line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(margin) + len(line) <= _WIDTH or not isinstance(value, (dict, list)):
        return line
    inner = f"{margin}  "
    rows = (
        [f"{json.dumps(key)}: {_laid_out(part, inner)}" for key, part in value.items()]
        if isinstance(value, dict)
        else [_laid_out(part, inner) for part in value]
    )
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    joined = f",\n{inner}".join(rows)
    return f"{opening}\n{inner}{joined}\n{margin}{closing}"


def main() -> int:
    """Write those that are not up to date."""
    for name, text in texts().items():
        path = Path(__file__).with_name(name)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
