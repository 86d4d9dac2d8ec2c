"""Words and numbers as people read them; text from reports made safe to show."""

import math
import re
import unicodedata
from collections.abc import Iterable

from profkit.core.unit_words import plural_of, unit_after

_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_SCALED = {"B", "B/s", "FLOP", "FLOP/s", "op", "op/s", "Hz", "FLOP/B"}
_FEWEST_DIGITS, _MOST_DIGITS = 2, 4
_COLOR = re.compile(r"(\x1b\[[\d;]*m)")
_BREAK = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_PRECISE_BELOW, _ROUND_FROM = 1.5, 10.0
"""Factors below the first have two decimals, for they are read as percents; from the second on
none, which is three times finer than the ranges that estimates have there."""
_SHOWN = 1.01  # the smallest factor that two decimals can show
_FULL, _EIGHTHS = "█", " ▏▎▍▌▋▊▉"


def literal(text: str) -> str:
    """Text with control and direction-changing characters spelled out (`\\x1b`, `\\u202e`)."""
    if text.isprintable():
        return text
    return "".join(
        _escape(character) if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def literal_lines(text: str) -> str:
    """Text with the control characters of each line spelled out."""
    return "\n".join(map(literal, text.split("\n")))


def literal_output(text: str) -> str:
    """The same of text for a terminal, which keeps its colors."""
    return "".join(
        part if place % 2 else literal_lines(part) for place, part in enumerate(_COLOR.split(text))
    )


def one_line(text: str) -> str:
    """Text on one line, its control characters spelled out; messages of libraries may have more."""
    return literal(_BREAK.sub(" ", text.strip("\r\n")))


def shorten(text: str, width: int) -> str:
    """At most `width` characters, the middle left out: kernel names differ at both ends."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :] if tail else ''}"


def cut(text: str, width: int) -> str:
    """At most `width` characters, the end left out."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def number(value: float, unit: str, digits: int = 4) -> str:
    """A value with its unit to four significant digits; `n/a` for NaN.

    Fewer `digits` are for seconds, bytes, FLOP and Hz.
    """
    if math.isnan(value):
        return "n/a"
    match unit:
        case "1":
            return percent(value)
        case "s":
            return _scaled(value, unit, _SMALL, digits)
        case "FLOP/B":
            return f"{_significant(value)} FLOP/B"
        case _ if unit in _SCALED:
            return _scaled(value, unit, _SI, digits)
        case _:
            return f"{count(value)} {unit_after(value, unit)}"


def factor(value: float) -> str:
    """A factor alone: `1.05x`, `2.2x`, `24x`."""
    return f"{_factor(value, precise=value < _PRECISE_BELOW)}x"


def factor_range(likely: float, low: float, high: float) -> str:
    """A factor with its range, in the digits of the likely one: `2.2x [1.9, 2.5]`."""
    precise = likely < _PRECISE_BELOW
    ends = ", ".join(_factor(end, precise=precise) for end in (low, high))
    return f"{_factor(likely, precise=precise)}x [{ends}]"


def factor_span(low: float, high: float) -> str:
    """A range of factors alone, in the digits of the higher: `1.0 to 2.4x`; where these are equal
    the one, `1.6x`, and `below 1.01x` for too little to show. The lower end is rounded down: 1.05
    is no promise of 1.1x."""
    if not high >= _SHOWN:
        return f"below {_SHOWN}x"
    precise = high < _PRECISE_BELOW
    ends = [_factor(end, precise=precise) for end in (low, high)]
    least = _factor(low, precise=precise, up=1e-9)
    return f"{ends[1]}x" if ends[0] == ends[1] else f"{least} to {ends[1]}x"


def measured_factor(value: float) -> str:
    """A factor to three significant digits, so that both ends of a range have as many: `3.30x`."""
    return f"{_significant(value, 3)}x"


def _factor(value: float, *, precise: bool, up: float = 0.5) -> str:
    """A factor whose last digit is rounded up from a part of it: all where that is 1e-9."""
    digits = 0 if value >= _ROUND_FROM else 2 if precise else 1
    return f"{value + (up - 0.5) * 10.0**-digits:,.{digits}f}"


def seconds_between(low: float, high: float) -> str:
    """An interval of times in one unit, to two digits of its width: `[48.97, 49.25] µs`."""
    factor, prefix = next((step for step in _SMALL if abs(high) >= step[0] * 0.99995), _SMALL[-1])
    width = (high - low) / factor
    digits = 1 - math.floor(math.log10(width)) if width > 0 else 3
    shown = [f"{end / factor:,.{max(0, min(digits, 6))}f}" for end in (low, high)]
    return f"[{shown[0]}, {shown[1]}] {prefix}s"


def supported_digits(value: float, low: float | None, high: float | None) -> int:
    """The significant digits of a value that its interval supports, two to four.

    The last digit is worth no less than a tenth of the interval's half-width; two where there is no
    interval: repeated runs of one kernel differ by percents (A/A floors of 0.5% to 1.5%).
    """
    if low is None or high is None or not value:
        return _FEWEST_DIGITS
    half = (high - low) / 2 / value
    wanted = 1 + math.ceil(-math.log10(half)) if half > 0 else _MOST_DIGITS
    return min(max(wanted, _FEWEST_DIGITS), _MOST_DIGITS)


def quantity_text(name: str, value: float, unit: str) -> str:
    """A quantity's value; of shared memory, which is configured by the KiB, in these."""
    return kibibytes(value) if unit == "B" and name.startswith("shared_") else number(value, unit)


def kibibytes(value: float) -> str:
    """Bytes of shared memory as they are configured, in KiB; in bytes where there are few."""
    if math.isnan(value):
        return "n/a"
    if 0 < value < 1024:
        return f"{value:.0f} B"
    return f"{value / 1024:.4g} KiB"


def percent(share: float) -> str:
    """A share as a percentage; small ones keep a digit that shows they are not zero."""
    if math.isnan(share):
        return "n/a"
    if 0 < abs(share) < 0.0005:
        return "<0.1%"
    return f"{share:.1%}"


def count(value: float) -> str:
    """A plain number: whole ones with separators, others to four significant digits."""
    if math.isnan(value):
        return "n/a"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else _significant(value)


def compact(value: float, digits: int = 4) -> str:
    """A count in few characters: from a million on to so many significant digits and M, G or T."""
    if math.isnan(value) or abs(value) < 1e6:
        return count(value)
    return _scaled(value, "", _SI, digits).rstrip()


def extent(sizes: Iterable[int]) -> str:
    """A grid or block: trailing ones left out, `4×32×8`."""
    parts = list(sizes)
    while len(parts) > 1 and parts[-1] == 1:
        parts.pop()
    return "×".join(str(part) for part in parts) or "n/a"


def bar(share: float, width: int) -> str:
    """A bar of `width` cells for a share; empty for NaN, full from 1 on."""
    if math.isnan(share):
        return ""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return _FULL * full + (_EIGHTHS[rest] if rest else "")


def plural(amount: int, word: str) -> str:
    """An amount with its noun: `1 launch`, `14 launches`, `69 quantities`."""
    return f"{amount:,} {word if amount == 1 else plural_of(word)}"


def _scaled(value: float, unit: str, scale: Iterable[tuple[float, str]], digits: int = 4) -> str:
    carried = 1 - 0.5 * 10.0**-digits  # from here on it rounds up to the next prefix
    for factor, prefix in scale:
        if abs(value) >= factor * carried:
            return f"{_significant(value / factor, digits)} {prefix}{unit}"
    factor, prefix = list(scale)[-1]
    return f"{_significant(value / factor, digits)} {prefix}{unit}"


def _significant(value: float, digits: int = 4) -> str:
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - math.floor(math.log10(abs(rounded)) + 1e-12))
    return f"{rounded:,.{min(places, 6)}f}"
