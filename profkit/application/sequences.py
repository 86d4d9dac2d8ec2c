"""Kernels in a row that a change of the program makes one: chains over memory, an optimizer's
update of many parameters, attention written out.

Kernels are told by their names alone (`kernel_kinds`); a row is of one stream of one step.
"""

from collections.abc import Callable, Iterator, Sequence

from profkit.application.kernel_kinds import (
    COPY,
    ELEMENTWISE,
    GEMM,
    GEMV,
    OPTIMIZER,
    PRODUCTS,
    REDUCTION,
    SOFTMAX,
    KernelTraits,
)
from profkit.application.replay import Call, Replay, Work
from profkit.core.grouping import grouped

PASSES = frozenset({ELEMENTWISE, "norm", SOFTMAX, REDUCTION, COPY, "random", "pooling"})
"""Kinds that read and write their data once, which a compiler makes one kernel of."""
SHORT_PRODUCT = 5e3
"""ns of a matrix product that is about its launch: 4 µs are those of 64 x 64 values on an H200."""
_FEWEST_UPDATES = 16  # kernels in a row of an optimizer, chosen: of less than four parameters
_FEWEST_ALIKE = 48  # the same where no name says so, chosen: longer than chains of a model
_FEW_NAMES = 6  # different kernels of an update written out: Adam has about ten, SGD three
_LONGEST = 16
"""Kernels of a chain that become one, chosen: compiled steps of a GPT have one for 14 at most."""
_BETWEEN = 6  # kernels between a softmax and its matrix products: scale, mask, cast, dropout
_LEAST_ALIKE = 4  # equal small products of a step, chosen
_BLOCKS_OF_GATHER = 8
"""Blocks of a product for each of the gather before it, at most: PyTorch gathers 4 KiB of a row or
512 values in a block, and multiplies 256 to 1024 values in one."""
_LEAST_GATHER = 16  # blocks, chosen: fewer may be of one value for each of 8,000 rows

Row = list[int]


def _rows(replay: Replay, belongs: Callable[[KernelTraits], bool]) -> Iterator[Row]:
    """Indices of kernels in a row that belong together, by stream and step."""
    last: dict[tuple[int, int], Row] = {}
    for index, work in enumerate(replay.works):
        key = work.stream, work.step
        if _is_kernel(work) and belongs(replay.traits[work.group[0]]):
            last.setdefault(key, []).append(index)
        elif work.role != "fill" and (row := last.pop(key, None)):
            yield row
    yield from last.values()


def _is_kernel(work: Work) -> bool:
    return work.role == "kernel"


def updates(replay: Replay) -> list[Row]:
    """The kernels of optimizers that update parameters one by one, or in many passes; none where no
    matrix product has parameters."""
    found: list[Row] = []
    kinds = {replay.traits[work.group[0]].kind for work in filter(_is_kernel, replay.works)}
    if kinds.isdisjoint({*PRODUCTS, GEMV}):
        return found
    for row in _rows(replay, lambda each: each.kind in {*PASSES, OPTIMIZER} and not each.fused):
        traits = [replay.traits[replay.works[index].group[0]] for index in row]
        named = [place for place, each in enumerate(traits) if each.update]
        names = {replay.works[index].group[0] for index in row}
        if len(named) >= 2 and (len(row) >= _FEWEST_UPDATES or traits[named[0]].kind == OPTIMIZER):
            found.append(row[named[0] : named[-1] + 1])
        elif len(row) >= _FEWEST_ALIKE and len(names) <= _FEW_NAMES:
            found.append(row)
    return found


def chains(replay: Replay) -> list[Row]:
    """Passes over memory in a row, each a framework's operation, but those of optimizers. A
    reduction ends a chain: what follows needs what all of its blocks computed."""
    taken = {index for row in updates(replay) for index in row}
    passes = _rows(replay, lambda each: each.kind in PASSES and each.eager and not each.layout)
    pieces: list[Row] = []
    for row in passes:
        piece: Row = []
        for index in (index for index in row if index not in taken):
            piece.append(index)
            is_reduced = replay.traits[replay.works[index].group[0]].kind == REDUCTION
            if is_reduced or len(piece) == _LONGEST:
                pieces.append(piece)
                piece = []
        pieces.append(piece)
    return [piece for piece in pieces if len(piece) > 1]


def attention(replay: Replay) -> list[Row]:
    """Softmax between two matrix products, with what is between them: the products are the first
    and the last of each row."""
    found: list[Row] = []
    kernels = ((work.stream, at) for at, work in enumerate(replay.works) if _is_kernel(work))
    for indices in grouped(kernels).values():
        traits = [replay.traits[replay.works[index].group[0]] for index in indices]
        for place, each in enumerate(traits):
            if each.kind == SOFTMAX and not each.is_loss:
                before, after = _product(traits, place, -1), _product(traits, place, 1)
                if before >= 0 and after >= 0:
                    found.append(indices[before : after + 1])
    return found


def _product(traits: Sequence[KernelTraits], place: int, step: int) -> int:
    """The next matrix product before or after a softmax; -1 where anything else is between."""
    for _ in range(_BETWEEN):
        place += step
        if not 0 <= place < len(traits):
            return -1
        if traits[place].kind in {GEMM, GEMV}:
            return place
        if traits[place].kind not in PASSES:
            return -1
    return -1


def messages(replay: Replay) -> list[Row]:
    """Rows gathered by index, multiplied, and scattered by atomics: the gather is the first. The
    product is of no more than was gathered: factors of each row are gathered for a product, too."""
    found: list[Row] = []
    for row in _rows(replay, lambda each: bool(each.message)):
        piece: Row = []
        for index in row:
            does = replay.traits[replay.works[index].group[0]].message
            if does == "gather":
                piece = []
            piece.append(index)
            if does == "scatter":
                blocks = {
                    replay.traits[work.group[0]].message: work.blocks
                    for work in (replay.works[each] for each in piece)
                }
                gather, product = (blocks.get(each, 0) for each in ("gather", "product"))
                if gather >= _LEAST_GATHER and 0 < product <= _BLOCKS_OF_GATHER * gather:
                    found.append(piece)
                piece = []
    return found


def small_products(replay: Replay) -> list[Row]:
    """Equal matrix products of a step that are about their launches."""
    rows = grouped(
        ((work.stream, work.step, work.group), index)
        for index, work in enumerate(replay.works)
        if _is_kernel(work)
        and work.duration < SHORT_PRODUCT
        and replay.traits[work.group[0]].kind == GEMM
    )
    return [row for row in rows.values() if len(row) >= _LEAST_ALIKE]


def merge(replay: Replay, row: Sequence[int], duration: float, calls: int = 1) -> None:
    """Leave the first `calls` launches of a row, with `duration` ns of GPU time in all."""
    for place, index in enumerate(row):
        work = replay.works[index]
        work.duration = duration / calls if place < calls else 0.0
        if place >= calls:
            work.stream_lag = min(work.stream_lag, 0.0)
            if work.call >= 0 and len(replay.calls[work.call].works) == 1:
                drop(replay, work.call)


def drop(replay: Replay, index: int) -> None:
    """Leave a call out, with the host's time and calls from the launch before it on."""
    replay.calls[index].wait = None
    for call in issue(replay, index):
        call.gap = call.own = 0.0


def issue(replay: Replay, index: int) -> Iterator[Call]:
    """A call, and those of its thread before it that belong to it: from the launch before on."""
    last = replay.calls[index]
    yield last
    for place in range(index - 1, -1, -1):
        call = replay.calls[place]
        if call.lane != last.lane or call.works or call.role != "other":
            return
        yield call
