"""How callables are measured and recorded: the keywords of `profile`, `compare` and `sweep`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

import numpy as np
from msgspec import Meta, Struct, structs

from profkit.core.errors import BadInput, UsageError
from profkit.core.suggestion import did_you_mean
from profkit.core.typed_file import convert
from profkit.core.work import Work
from profkit.timing.results import PRESETS, Thresholds

_SECONDS = 30.0  # chosen, as `profkit profile`: 240 samples of 0.1 s

AnyWork = Work | Callable[..., Work] | None
Natural: TypeAlias = Annotated[int, Meta(ge=1)]


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


class Options(Struct, frozen=True):
    """The options of a measurement, named as those of `profkit time`.

    `reference` is a callable, which gets the arguments in float64, or the expected result. `work`
    is what one call needs, or a callable that says it of the arguments. `seconds` limits the time
    of the samples of a callable (None: no limit). `timer` None: one that sees the work. `margin` is
    a share. `stream` is the one that the work runs on, where it is not the current one of torch or
    CuPy. `ncu` records the call too: True, or the name of a capture set; `out` is where its run
    goes.
    """

    reference: Any = None
    work: Any = None
    samples: Natural = 100
    blocks: Natural = 8
    seconds: Annotated[float, Meta(gt=0)] | None = _SECONDS
    warmup_ms: Annotated[float, Meta(ge=0)] = 500.0
    timer: str | None = None
    cache: Literal["cold", "warm"] = "cold"
    margin: Annotated[float, Meta(gt=0, lt=1)] | None = None
    preset: Literal["default", "strict", "permissive"] = "default"
    device: Literal["cuda", "cpu"] | None = None
    stream: Any = None
    ncu: bool | str = False
    out: Any = "reports"

    @property
    def thresholds(self) -> Thresholds:
        """The preset's, with the margin that is given."""
        chosen = PRESETS[self.preset]
        return chosen if self.margin is None else structs.replace(chosen, margin=self.margin)


def options_of(keywords: Mapping[str, object]) -> Options:
    """The options of keywords; raises UsageError for an unknown one, and for a wrong value."""
    names = Options.__struct_fields__
    for name in keywords:
        if name not in names:
            known = f"options are {', '.join(names)}"
            raise UsageError(f"no option {name!r}", did_you_mean(name, names, known))
    numbers = {
        name: value.item()
        for name, value in keywords.items()
        if isinstance(value, np.number) and name != "reference"
    }
    try:
        return convert({**keywords, **numbers}, Options)
    except BadInput as error:
        raise UsageError(error.message, "leave it out") from None
