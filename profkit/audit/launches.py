"""Claims about launches: occupancy, what fits on an SM, limits."""

from collections.abc import Iterator

from msgspec.structs import replace

from profkit.audit.check import Check, Rule, Span, amount
from profkit.audit.subject import Subject
from profkit.hardware.gpus import SmLimits, all_sm_limits, sm_limits
from profkit.hardware.occupancy import BlockNeeds, blocks_by_registers, blocks_by_shared
from profkit.hardware.occupancy import warps_per_block as warps_of
from profkit.machine_code.operation import WARP
from profkit.ui.text import plural

# CUDA C++ Programming Guide, technical specifications: the same on every compute capability.
_MAX_REGISTERS = 255
_MAX_THREADS = 1024  # the same table
# Occupancies are printed to whole percents, rounded or cut.
_OCCUPANCY_SLACK = 0.006


def grid(subject: Subject) -> Iterator[Check]:
    """A CUDA grid has three dimensions."""
    claimed = subject.claim.grid_dimensions
    if claimed is not None:
        others = "two of the four" if claimed == 4 else "the others"
        target = "one" if claimed == 4 else "them"
        yield subject.statement(
            "grid", "grid_dimensions", f"a grid of {claimed} dimensions",
            "a CUDA grid has three dimensions at most: x, y, z",
            f"three dimensions, {others} folded into {target}", wrong=claimed > 3,
        )  # fmt: skip


def limits(subject: Subject) -> Iterator[Check]:
    """A thread has 255 registers at most, a block 1,024 threads and the SM's shared memory."""
    chips = _chips(subject)
    warps = max(limits.chip.warps for limits in chips)
    for field, limit, holder in (
        ("registers", _MAX_REGISTERS, "a thread has"),
        ("threads", _MAX_THREADS, "a block has"),
        ("shared", max(limits.block_shared for limits in chips), "a block has"),
        ("resident_warps", warps, "an SM holds"),
        ("resident_threads", warps * WARP, "an SM holds"),
        ("resident_blocks", max(limits.chip.blocks for limits in chips), "an SM holds"),
    ):
        yield from _at_most(subject, "launch_limit", field, limit, f"{holder} at most ")


def _at_most(
    subject: Subject, rule: Rule, field: str, limit: float, words: str, used: tuple[str, ...] = ()
) -> Iterator[Check]:
    claimed, most = subject.claim[field], _count(limit, field)
    if claimed:
        span = Span(float(limit) or claimed.value, 0.0, limit, "", words + most, used)
        yield from subject.check(rule, field, [span], should_be=f"at most {most}", slack=0.0)


def _count(value: float, field: str) -> str:
    if field == "shared":
        return f"{value / 1024:g} KB"
    if field.endswith("occupancy"):
        return f"{value:.0%}"
    noun = field.removeprefix("resident_")
    return f"{value:,.0f} {noun.removesuffix('s') if value == 1 else noun}"


def _chips(subject: Subject) -> list[SmLimits]:
    """The limits of the SMs that are meant: of every capability where no known GPU is named."""
    known = [limits for sheet in subject.sheets if (limits := sm_limits(sheet.cc))]
    return known or all_sm_limits()


def _resident(subject: Subject, chip: SmLimits) -> tuple[int, str]:
    """The most blocks of the claimed shape on an SM, and the calculation."""
    registers, threads, shared = (
        int(figure.value) if (figure := subject.claim[name]) else 0
        for name in ("registers", "threads", "shared")
    )
    warps = _warps(subject)
    fits = {"blocks": chip.chip.blocks, "warps": chip.chip.warps // warps}
    if registers:
        fits["registers"] = blocks_by_registers(registers, threads or WARP, chip.chip)
    if shared:
        needs = BlockNeeds(0, 0, shared + chip.reserved_shared, 0, 0)
        fits["shared memory"] = blocks_by_shared(needs, chip.chip)
    limit, resident = min(fits.items(), key=lambda item: item[1])
    return resident, (
        f"CC {chip.cc[0]}.{chip.cc[1]}, limited by {limit} to "
        f"{plural(resident, 'block')} per SM: {resident * warps} of {chip.chip.warps} warps"
    )


def _launch(subject: Subject) -> tuple[str, ...]:
    """What is claimed of the shape of a launch."""
    return tuple(name for name in ("registers", "threads", "shared") if subject.claim[name])


def occupancy(subject: Subject) -> Iterator[Check]:
    """Resident warps over the warps that an SM holds: no more than fit, in whole blocks."""
    claim = subject.claim
    for field in ("occupancy", "achieved_occupancy"):
        if claim[field] and _launch(subject):
            yield from _of_launch(subject, field)
        else:
            yield from _at_most(subject, "occupancy", field, 1.0, "occupancy is at most ")
    if theoretical := claim["occupancy"]:
        yield from _at_most(
            subject, "occupancy", "achieved_occupancy", theoretical.high,
            "achieved occupancy is at most the theoretical one, ", ("occupancy",),
        )  # fmt: skip


def _of_launch(subject: Subject, field: str) -> Iterator[Check]:
    """Theoretical occupancy of a known block size goes in steps of a block."""
    by_chip = [_shares(subject, chip) for chip in reversed(_chips(subject))]
    words = max((shares[-1] for shares in by_chip), key=lambda share: share.value).calculation
    if field == "occupancy" and subject.claim["threads"]:
        spans = [share for shares in by_chip for share in shares]
    else:
        spans = [replace(shares[-1], low=0.0) for shares in by_chip]
    spans = [replace(span, calculation=words, used=_launch(subject)) for span in spans]
    yield from subject.check("occupancy", field, spans, slack=0.0)


def _shares(subject: Subject, chip: SmLimits) -> list[Span]:
    """The occupancies of one block up to all that fit, and the calculation of the last."""
    resident, words = _resident(subject, chip)
    warps = _warps(subject)
    shares = [min(1.0, count * warps / chip.chip.warps) for count in range(1, resident + 1)]
    shares = shares or [1e-6]
    words = f"{words} = {amount(shares[-1], '1')}"
    return [
        Span(share, share - _OCCUPANCY_SLACK, share + _OCCUPANCY_SLACK, "1", words)
        for share in shares
    ]


def _warps(subject: Subject) -> int:
    """Warps of a block; 1 where its size is open, so that no step is left out."""
    threads = subject.claim["threads"]
    return warps_of(int(threads.value)) if threads else 1


def residency(subject: Subject) -> Iterator[Check]:
    """No more blocks share an SM than its registers, shared memory and warps hold."""
    used = _launch(subject)
    if used and not ("registers" in used and "threads" not in used):
        resident = [_resident(subject, chip) for chip in _chips(subject)]
        most, words = max(resident, key=lambda pair: pair[0])
        yield from _at_most(
            subject, "residency", "resident_blocks", most, f"{words}; at most ", used
        )
