"""Whether a variant's result is right: its distance from a reference computed in float64.

Also the output of target scripts: `profkit.target/1` and `profkit.check/1`.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, field

from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import Count, Facts, File, Maybe, Model, Number
from profkit.core.work import Work

BOUNDS: Mapping[str, float] = {"float16": 2e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-12}
"""Largest relative error by dtype.

Rounding the result once gives an error of 0.42 units of roundoff: 2e-4 in float16, 1.7e-3 in
bfloat16. The bounds leave ten and five times that for the rounding of intermediates, such as the
probabilities of attention; a wrong mask or a lost tile is far above them. float32 leaves room for
sums of some thousand terms and none for TF32 (5e-4); float64 leaves the same room.
"""


class Status(StrEnum):
    """The result of a variant's check."""

    passed = "passed"
    failed = "failed"
    unsupported = "unsupported"


class WrongResult(Exception):
    """A result that is wrong whatever the reference returns; the message has the reason."""


class Verdict(Model, frozen=True):
    """The check of one variant.

    `error` is the relative error, a fraction; None where there is none to give (not a number,
    another shape, not run). `reason` is why the variant did not pass; empty when it did.
    """

    name: str
    status: Status
    error: Number | None = None
    bound: Number = 0.0
    reason: str = ""

    @property
    def evidence(self) -> str:
        """The error and its bound, or the reason where there is no error."""
        if self.status is Status.unsupported or self.error is None:
            return self.reason
        return f"relative error {self.error:.1e}, at most {self.bound:.0e}"

    def line(self, width: int) -> str:
        """The verdict on one line, the name padded to `width`."""
        return f"{self.name:<{width}}  {self.status.value:<11}  {self.evidence}"


Shapes: TypeAlias = dict[str, Any]
"""The sizes of a problem by name, as a target declares them."""
Dtype = Literal["float16", "bfloat16", "float32", "float64"]


class Declared(Facts, frozen=True, kw_only=True):
    """The declaration of a latency's target."""

    name: Maybe[str] = UNSET
    shapes: Maybe[Shapes] = UNSET
    dtype: Maybe[str] = UNSET
    work: Maybe[Work] = UNSET
    variants: Maybe[tuple[str, ...]] = UNSET

    @property
    def words(self) -> str:
        """The work in words, else the shapes."""
        shapes = " ".join(f"{key}={value}" for key, value in (self.shapes or {}).items())
        return (self.work.what if self.work else "") or shapes


class TargetFile(File, frozen=True, kw_only=True, tag="profkit.target/1"):
    """The declaration of a target script.

    `shapes` describes the problem's size, `work` is what one call needs, not what a kernel does.
    """

    name: str
    shapes: Shapes
    dtype: Dtype
    work: Work | None
    variants: Annotated[tuple[str, ...], Meta(min_length=1)]


class CheckFile(File, frozen=True, kw_only=True, tag="profkit.check/1"):
    """The check of a target's variants against its reference, and its device."""

    name: str
    shapes: Shapes = field(default_factory=dict)
    dtype: Dtype | None = None
    work: Work | None = None
    variants: Annotated[tuple[Verdict, ...], Meta(min_length=1)]
    device: Literal["cuda", "cpu"] = "cuda"
    seed: Count | None = None
    fingerprint: Fingerprint = Fingerprint()
    fingerprint_sha256: str = ""


def judge(name: str, result: Any, reference: Any, dtype: str) -> Verdict:
    """Compare a variant's tensor with the float64 reference, which has the right shape.

    A result of another kind, shape or dtype, or one that is not finite, never passes.
    """
    bound = BOUNDS[dtype]
    reason = _unlike(result, reference, dtype)
    if reason:
        return Verdict(name, Status.failed, None, bound, reason)
    error = relative_error(result, reference)
    if not math.isfinite(error):
        return Verdict(name, Status.failed, None, bound, "the error is not finite")
    if error <= bound:
        return Verdict(name, Status.passed, error, bound)
    reason = f"relative error {error:.1e} is above {bound:.0e}"
    return Verdict(name, Status.failed, error, bound, reason)


def relative_error(result: Any, reference: Any) -> float:
    """||result - reference|| / ||reference|| in float64 over all elements of two tensors.

    Infinite where the reference is all zero and the result is not.
    """
    import torch

    if not reference.numel():
        return 0.0
    largest = torch.linalg.vector_norm(reference, ord=math.inf).item()
    scale = norm_scale(largest)
    distance = torch.linalg.vector_norm((result.double() - reference).div_(scale)).item()
    if largest == 0.0:
        return 0.0 if distance == 0.0 else math.inf
    return float(distance / torch.linalg.vector_norm(reference / scale).item())


def norm_scale(largest: float) -> float:
    """The power of two to divide values by so that their squares stay in float64's range, of the
    largest magnitude."""
    if not math.isfinite(largest) or largest == 0.0:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _unlike(result: Any, reference: Any, dtype: str) -> str:
    """Why a result can't be compared; empty when it can."""
    import torch

    if not isinstance(result, torch.Tensor):
        return f"returned {type(result).__name__}, not a tensor"
    if result.shape != reference.shape:
        return f"shape {tuple(result.shape)}, the reference has {tuple(reference.shape)}"
    if result.dtype != getattr(torch, dtype):
        return f"dtype {str(result.dtype).removeprefix('torch.')}, the target declares {dtype}"
    if result.device != reference.device:
        return f"on {result.device}, the inputs are on {reference.device}"
    broken = int((~torch.isfinite(result)).sum().item())
    if broken:
        return f"{broken} of {result.numel()} values are not finite"
    return ""
