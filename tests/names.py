"""What `make lint` checks of names and constants: `python -m tests.names`.

Names are nouns of the field: pronouns, participles and prepositions are at most MOST of all name
tokens. A numeric constant of a module says in a comment or in the text below it where its value
comes from.
"""

from __future__ import annotations

import ast
import io
import itertools
import keyword
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator

from tests.conftest import ROOT

VAGUE = {
    *("one", "found", "told", "said", "at", "by", "of", "kept", "how", "what", "written"),
    *("printed", "taken", "given", "there"),
}
MOST = 0.005
"""Twice the share in memray, pyperf, nsight-python and rocprofiler-compute (at most 0.23%)."""


def name_tokens(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            yield token.string


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone, other than the plain 0 and 1."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value not in (0, 1)
    )


def unsourced_constants(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of the module's numeric constants with neither a comment nor a text."""
    lines = text.splitlines()
    body = ast.parse(text).body
    for node, after in itertools.zip_longest(body, body[1:]):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not is_number(node.value):
            continue
        explained = (
            isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        )
        near = lines[max(0, node.lineno - 2) : node.end_lineno]
        if not explained and not any("#" in line for line in near):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield node.lineno, ast.unparse(target)


def main() -> int:
    total, vague, unsourced = 0, Counter[str](), []
    for path in sorted((ROOT / "profkit").rglob("*.py")):
        text, place = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        tokens = Counter(name_tokens(text))
        total += tokens.total()
        vague[place] = sum(tokens[name] for name in VAGUE)
        unsourced += [f"{place}:{line}: {name}" for line, name in unsourced_constants(text)]
    share = vague.total() / total
    print(f"{share:.2%} of {total} name tokens are pronouns, participles or prepositions")
    if share > MOST:
        print(
            f"at most {MOST:.2%}; most are in",
            *(f"{n} {place}" for place, n in vague.most_common(10)),
            sep="\n  ",
        )
    if unsourced:
        print(
            f"{len(unsourced)} numeric constants do not say where they come from:",
            *unsourced,
            sep="\n  ",
        )
    return int(share > MOST or bool(unsourced))


if __name__ == "__main__":
    sys.exit(main())
