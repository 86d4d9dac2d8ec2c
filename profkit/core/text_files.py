"""Reading of untrusted text and JSON files.

Size, depth, number of values and digits are limited; files of the package itself are read without
limits. `profkit.core.yaml_files` does the same for YAML.
"""

import itertools
import json
import math
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from reprlib import repr as brief
from typing import Any, NoReturn

from profkit.core.errors import BadInput, inside
from profkit.core.regular_file import read_limited

_LARGEST_TEXT = 64 << 20  # 90 times the largest saved summary; parsed it takes under 300 MB
_MOST_JSON = 2_000_000  # values: 0.5 s, and under 300 MB where each is an object
DEEPEST = 50  # levels: the deepest format of our own has 12
MOST_DIGITS = 100  # of an integer; Python reads 4,300, and a double holds no number of 310

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
_BRACKETS = re.compile(r"[^\[\]{}]++")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
CHECK = "check the file"


class MissingFile(BadInput):
    """A file that is not there."""


class Malformed(BadInput):
    """Text that is not of its format, or beyond a limit; `line` counts from 1, 0 where unknown."""

    def __init__(self, message: str, remedy: str = CHECK, line: int = 0) -> None:
        super().__init__(message, remedy)
        self.line = line


class WrongFormat(Malformed):
    """Text of another format."""


def read_text(path: Path, remedy: str = "check the path", largest: int = _LARGEST_TEXT) -> str:
    """The UTF-8 text of a regular file.

    Raises MissingFile, and BadInput with this `remedy` where it can't be read; BadInput too for
    what is no regular file, more than `largest` bytes or not UTF-8.
    """
    try:
        return read_limited(path, largest).decode("utf-8")
    except FileNotFoundError as error:
        raise MissingFile(f"{path}: can't be read ({error.strerror})", remedy) from None
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror})", remedy) from None
    except ValueError as error:
        why = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "invalid file name"
        raise BadInput(f"{path}: can't be read ({why})", remedy) from None


def read_json(path: Path, remedy: str = CHECK) -> Any:
    """The document of a JSON file; raises as `read_text`, and Malformed as `parse_json`."""
    text = read_text(path, remedy)
    with inside(path, remedy):
        return parse_json(text)


def parse_json(text: str, number: Callable[[str], Any] | None = None, **hooks: Any) -> Any:
    """A JSON document of finite numbers and whole characters; `hooks` are those of `json.loads`.

    `number` makes the values of numbers from their texts. Raises Malformed for invalid JSON,
    and for NaN, infinities, lone surrogates, too deep nesting, too many values, numbers of too many
    digits.
    """
    _check_extent(text)
    if number is not None:
        hooks |= dict.fromkeys(("parse_float", "parse_int"), _limited(number))
    try:
        document = json.loads(
            text,
            **{"parse_constant": _not_finite, "parse_float": _finite, "parse_int": _whole, **hooks},
        )
    except (ValueError, RecursionError) as error:
        raise WrongFormat(f"is not JSON ({brief_words(error)})") from None
    if _SURROGATE.search(text):
        _check_characters(text)
    return document


def _check_extent(text: str) -> None:
    """Raise Malformed for more values or levels than are read; strings count at most once."""
    if text.count(",") + text.count("[") + text.count("{") > _MOST_JSON:
        bare = _STRING.sub("", text)
        if bare.count(",") + bare.count("[") + bare.count("{") > _MOST_JSON:
            raise Malformed(f"contains more than {_MOST_JSON:,} values", "split it")
    if text.count("[") + text.count("{") > DEEPEST:
        brackets = _BRACKETS.sub("", _STRING.sub("", text))
        steps = (1 if bracket in "[{" else -1 for bracket in brackets)
        if max(itertools.accumulate(steps), default=0) > DEEPEST:
            raise Malformed(f"nested too deeply (more than {DEEPEST} levels)")


def _not_finite(word: str) -> NoReturn:
    raise Malformed(f"contains {word}", "numbers must be finite")


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _not_finite(brief(word))


def _limited(number: Callable[[str], Any]) -> Callable[[str], Any]:
    """The same for a number of few enough digits."""

    def checked(word: str) -> Any:
        if len(word) > MOST_DIGITS:
            raise Malformed(f"contains a number of {len(word):,} digits", f"at most {MOST_DIGITS}")
        return number(word)

    return checked


_whole = _limited(int)


def _check_characters(text: str) -> None:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Malformed("contains a lone surrogate (half a UTF-16 character)") from None


def brief_words(error: Exception) -> str:
    """A parser's error message on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def last_line(output: str) -> str:
    """The last line of a program's output that isn't empty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def error_words(error: BaseException) -> str:
    """An error's type and message on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def shipped_text(package: str, name: str) -> str:
    """A text that comes with the package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
