"""How much a call of each load moves or computes, and how large it is made for a GPU."""

from msgspec import Struct

VECTOR = 16  # bytes of a load or store

COPY_THREADS, COPY_TILE = 256, 1024
READ_THREADS, READ_TILE = 512, 2048
FMA_THREADS, FMA_CHAINS = 256, 16
MMA_THREADS, MMA_TILE_FLOP = 256, 65536

_LARGEST_COPY = 2 << 30  # bytes; chosen: a copy of about a millisecond at 4.8 TB/s
_SHARE_OF_MEMORY = 8  # chosen: source and target fit beside what others hold
_TIMES_L2 = 4  # chosen: at most a quarter of a buffer can still be in L2
_L2_SET = 4  # the quarter that `l2_slices` explains
_L2_SET_AT_MOST = 2  # each half of Hopper's L2 keeps a copy of its side's reads
_FULL_FP64 = ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0))


class Machine(Struct, frozen=True):
    """What loads depend on; `cc` is the compute capability, sizes in bytes; torch's `device`."""

    cc: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    device: str = "cuda"

    @property
    def full_fp64(self) -> bool:
        """Whether FP64 runs at half the rate of FP32, and not at 1/32 or 1/64."""
        return self.cc in _FULL_FP64


class Slices(Struct, frozen=True):
    """A set in L2: `blocks` slices of `count` vectors each."""

    blocks: int
    count: int

    @property
    def bytes(self) -> int:
        """Of the whole set."""
        return self.blocks * self.count * VECTOR


def buffer_vectors(machine: Machine) -> int:
    """16-byte vectors of a buffer in DRAM: 2 GiB, or an eighth of the memory where that is less.

    0 where that is not four times the L2 cache: what is read would come from there.
    """
    size = min(_LARGEST_COPY, machine.memory_bytes // _SHARE_OF_MEMORY)
    whole = size // (COPY_TILE * VECTOR) * COPY_TILE
    return whole if whole * VECTOR >= _TIMES_L2 * machine.l2_bytes else 0


def copy_bytes(vectors: int) -> float:
    """Bytes that a copy of so many vectors moves: each is read and written."""
    return 2.0 * VECTOR * vectors


def read_slices(machine: Machine) -> Slices:
    """Slices of a buffer in DRAM, four blocks a multiprocessor, each a number of whole tiles."""
    blocks = 4 * machine.sm_count
    return Slices(blocks, buffer_vectors(machine) // blocks // READ_TILE * READ_TILE)


def l2_slices(machine: Machine) -> Slices | None:
    """Slices that fill a quarter of L2, two blocks or one a multiprocessor; half of L2 at most.

    A quarter, for Hopper's L2 has two halves, and each keeps a copy of what its side reads. None
    where even one tile a multiprocessor is more than half of L2.
    """
    for a_multiprocessor in (2, 1):
        blocks = a_multiprocessor * machine.sm_count
        tiles = machine.l2_bytes // _L2_SET // (blocks * READ_TILE * VECTOR)
        slices = Slices(blocks, max(1, tiles) * READ_TILE)
        if slices.bytes <= machine.l2_bytes // _L2_SET_AT_MOST:
            return slices
    return None


def read_bytes(slices: Slices, repeats: int) -> float:
    """Bytes that are read of slices."""
    return float(slices.bytes) * repeats


def multiply_add_flop(blocks: int, steps: int) -> float:
    """FLOP of multiply_add.cu: two fused multiply-adds, four FLOP, a value and step."""
    return 4.0 * blocks * FMA_THREADS * FMA_CHAINS * steps


def mma_flop(blocks: int, steps: int) -> float:
    """FLOP of mma_sync.cu: 2 * 64 * 32 * 16 a warp and step."""
    return float(MMA_TILE_FLOP) * blocks * (MMA_THREADS // 32) * steps


def product_flop(size: int) -> float:
    """FLOP, or integer operations, of a product of two square matrices: 2 n^3."""
    return 2.0 * size**3
