"""Output of target scripts: `profkit.target/1` and `profkit.check/1`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from profkit.capture.correctness import Verdict
from profkit.capture.work import Work
from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import Count, File

Dtype = Literal["float16", "bfloat16", "float32", "float64"]


class TargetFile(File, frozen=True, kw_only=True, tag="profkit.target/1"):
    """The declaration of a target script.

    `shapes` describes the problem's size, `work` is what one call needs, not what a kernel does.
    """

    name: str
    shapes: dict[str, Any]
    dtype: Dtype
    work: Work | None
    variants: Annotated[tuple[str, ...], Meta(min_length=1)]


class CheckFile(File, frozen=True, kw_only=True, tag="profkit.check/1"):
    """The check of a target's variants against its reference, and its device."""

    name: str
    shapes: dict[str, Any] = field(default_factory=dict)
    dtype: Dtype | None = None
    work: Work | None = None
    variants: Annotated[tuple[Verdict, ...], Meta(min_length=1)]
    device: Literal["cuda", "cpu"] = "cuda"
    seed: Count | None = None
    fingerprint: Fingerprint = Fingerprint()
    fingerprint_sha256: str = ""
