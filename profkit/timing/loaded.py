"""What a process that times (`profkit.timing.worker`) says of its target and of where it runs."""

from msgspec import structs

from profkit.capture.correctness import Declared, Verdict
from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import Model


class VariantFacts(Model, frozen=True, kw_only=True):
    """The version and setting of a variant; `unavailable` is the reason why it can't run here, ""
    where it can; `chosen` is the variant that it dispatches to, null where that is unknown."""

    setting: str = ""
    version: str | None = None
    unavailable: str = ""
    chosen: str | None = None


class Declaration(Model, frozen=True, kw_only=True):
    """A target's declaration, and its variants by name."""

    target: Declared
    variants: dict[str, VariantFacts]


class Located(Model, frozen=True, kw_only=True):
    """Where a target runs, "cuda" or "cpu", and the environment."""

    device: str
    fingerprint: Fingerprint

    @property
    def used(self) -> Fingerprint:
        """The fingerprint, without a GPU that was not used."""
        if self.device == "cuda":
            return self.fingerprint
        return structs.replace(self.fingerprint, gpu=None)


class Loaded(Located, frozen=True, kw_only=True):
    """A target that was imported: the chosen variants, their checks, and the seconds that it took
    by part of the work."""

    target: Declared
    checks: tuple[Verdict, ...]
    variants: dict[str, VariantFacts]
    fingerprint_sha256: str
    spans: dict[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the chosen variants."""
        return self.target.variants or ()
