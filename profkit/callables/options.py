"""How callables are measured and recorded: the keywords of `profile`, `compare` and `sweep`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from msgspec import structs

from profkit.core.errors import UsageError
from profkit.core.suggestion import did_you_mean
from profkit.core.work import Work
from profkit.timing.results import PRESETS, Thresholds
from profkit.timing.stopwatch import Cache

_SECONDS = 30.0  # chosen, as `profkit profile`: 240 samples of 0.1 s

AnyWork = Work | Callable[..., Work] | None


class Keywords(TypedDict, total=False):
    """The keywords; see `Options`."""

    reference: Any
    work: AnyWork
    samples: int
    blocks: int
    seconds: float | None
    warmup_ms: float
    timer: str | None
    cache: str
    margin: float | None
    preset: str
    device: str | None
    stream: Any
    ncu: bool | str
    out: str | Path


@dataclass(frozen=True)
class Options:
    """The options of a measurement, named as those of `profkit time`.

    `reference` is a callable, which gets the arguments in float64, or the expected result. `work`
    is what one call needs, or a callable that says it of the arguments. `seconds` limits the time
    of the samples of a callable (None: no limit). `timer` None: one that sees the work. `margin` is
    a share. `stream` is the one that the work runs on, where it is not the current one of torch or
    CuPy. `ncu` records the call too: True, or the name of a capture set; `out` is where its run
    goes.
    """

    reference: Any = None
    work: AnyWork = None
    samples: int = 100
    blocks: int = 8
    seconds: float | None = _SECONDS
    warmup_ms: float = 500.0
    timer: str | None = None
    cache: str = Cache.cold.value
    margin: float | None = None
    preset: str = "default"
    device: str | None = None
    stream: Any = None
    ncu: bool | str = False
    out: str | Path = "reports"

    @property
    def thresholds(self) -> Thresholds:
        """The preset's, with the margin that is given."""
        chosen = PRESETS[self.preset]
        return chosen if self.margin is None else structs.replace(chosen, margin=self.margin)


_Value = TypeVar("_Value")


def options_of(keywords: Mapping[str, Any]) -> Options:
    """The options of keywords; raises UsageError for an unknown one, and for a wrong value."""
    names = [field.name for field in fields(Options)]
    for name in keywords:
        if name not in names:
            known = f"options are {', '.join(names)}"
            raise UsageError(f"no option {name!r}", did_you_mean(name, names, known))
    options = Options(**keywords)
    _one_of("preset", options.preset, tuple(PRESETS))
    _one_of("cache", options.cache, tuple(Cache))
    _one_of("device", options.device, (None, "cuda", "cpu"))
    if not (options.samples > 0 and options.blocks > 0 and options.warmup_ms >= 0):
        raise UsageError("samples and blocks are at least 1, warmup_ms 0", "leave them out")
    if options.seconds is not None and not options.seconds > 0:
        raise UsageError(f"seconds={options.seconds} is no time", "give seconds above 0, or None")
    if options.margin is not None and not 0 < options.margin < 1:
        raise UsageError(f"margin={options.margin} is not a share", "give 0.01 for 1%")
    return options


def _one_of(name: str, value: _Value, known: tuple[_Value, ...]) -> None:
    if value not in known:
        words = ", ".join(repr(getattr(each, "value", each)) for each in known)
        raise UsageError(f"{name}={value!r} is not one of {words}", "leave it out")
