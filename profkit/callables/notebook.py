"""IPython's `%load_ext profkit`: the magic `%%profkit` for a cell."""

from __future__ import annotations

import argparse
import ast
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from profkit.callables.calls import invocations, measure_calls
from profkit.callables.options import Options, options_of
from profkit.callables.run import Run
from profkit.core.errors import ProfkitError, UsageError
from profkit.ui.text import one_line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_CELL = "cell"
_NUMBERS: Mapping[str, Callable[[str], Any]] = {
    "samples": int, "blocks": int, "seconds": float, "warmup_ms": float, "margin": float,
}  # fmt: skip
_NAMES = {"reference", "work", "stream"}
_USAGE = "%%profkit [--ncu] [--reference NAME] [--samples N] [--name NAME] ..."


def load(shell: InteractiveShell) -> None:
    """Define the magic."""

    def cell(line: str, cell: str) -> Run | None:
        """Check and time the cell's body, whose last expression is its result.

            %%profkit --reference expected --ncu
            y = f(x)
            y.sum()

        --reference NAME: the value, or a function that returns it, to check the result against.
        --ncu: also record it with Nsight Compute.
        --samples N, --blocks N, --seconds S, --warmup-ms MS: how long it is timed.
        --margin SHARE, --work NAME, --stream NAME, --name NAME: as of `profkit.profile`.
        """
        try:
            options = _options(shell, line)
            function = _function(shell.user_ns, cell, options.pop("name", _CELL))
            return measure_calls(invocations([function], (), {}), options_of(options))
        except ProfkitError as error:
            print(one_line(f"profkit: {error}"))
            return None

    shell.register_magic_function(cell, "cell", "profkit")


def _function(names: dict[str, Any], body: str, name: str) -> Callable[[], Any]:
    """A function of the code, with a notebook's names as its globals.

    Names that it sets are its own, as in any function: the notebook's stay, and looking them up
    costs what it costs in a function. Raises UsageError for what is no Python.
    """
    if not name.isidentifier():
        raise UsageError(f"--name {name!r} is not a name", "use letters, digits and _")
    try:
        tree = ast.parse(f"def {name}():\n    pass")
        (definition,) = tree.body
        assert isinstance(definition, ast.FunctionDef)
        definition.body = _returning(ast.parse(body).body)
        code = compile(ast.fix_missing_locations(tree), f"<{name}>", "exec")
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise UsageError(f"{place}{error.msg}", _USAGE) from None
    before = {name: names[name]} if name in names else {}
    exec(code, names)
    function: Callable[[], Any] = names.pop(name)
    names.update(before)
    return function


def _returning(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements whose last expression is returned."""
    if not body:
        raise UsageError("the cell is empty", "write what to time below %%profkit")
    last = body[-1]
    if isinstance(last, ast.Expr):
        return [*body[:-1], ast.Return(last.value)]
    return body


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of profkit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, _USAGE)


def _options(shell: InteractiveShell, line: str) -> dict[str, Any]:
    """`--samples 50 --ncu --reference expected` as keywords.

    Raises UsageError for an option that is none, one without a value, and an unknown name.
    """
    parser = _Parser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("--ncu", nargs="?", const=True)
    for name in {"name", *Options.__struct_fields__} - {"ncu"}:
        parser.add_argument(f"--{name.replace('_', '-')}", type=_NUMBERS.get(name, str))
    try:
        options = vars(parser.parse_args(shlex.split(line)))
    except ValueError as error:
        raise UsageError(f"{line}: {error}", "close the quotation marks") from None
    for name in options.keys() & _NAMES:
        if options[name] not in shell.user_ns:
            words = f"--{name} {options[name]}: no such name in the notebook"
            raise UsageError(words, "define it first")
        options[name] = shell.user_ns[options[name]]
    return options
