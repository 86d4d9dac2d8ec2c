"""Parts of an Nsight Compute report, each a report of its own.

One run of ncu over many kernels costs one start of the program instead of one a kernel. A report is
a magic number and a file header, then blocks: a header that counts the block's records, and the
records, each behind its length. Records are sources (a module's machine code and text) and results
(a launch); a result names its source by number. A part has all blocks, of their records only its
own launches and what these name, so that no byte of a record changes. Format: NVIDIA, Nsight
Compute Customization Guide, "File Format".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from profkit.report.framing import MAGIC
from profkit.report.messages import decode, prefixed


@dataclass(frozen=True)
class _Block:
    header: Any
    sources: tuple[bytes, ...]
    launches: tuple[bytes, ...]


@dataclass(frozen=True)
class Whole:
    """A report's bytes, taken apart."""

    start: bytes
    blocks: tuple[_Block, ...]

    @property
    def launches(self) -> int:
        return sum(len(block.launches) for block in self.blocks)

    def part(self, indices: Collection[int]) -> bytes:
        """A report with the launches of these indices alone, in their order.

        Raises IndexError for one that there is not.
        """
        if not set(indices) <= set(range(self.launches)):
            raise IndexError(f"of {self.launches} launches, {sorted(indices)} were asked for")
        launches = [launch for block in self.blocks for launch in block.launches]
        named = {_source_of(launches[index]) for index in indices}
        written, at = [self.start], 0
        for block in self.blocks:
            kept = [one for i, one in enumerate(block.launches, start=at) if i in indices]
            at += len(block.launches)
            written.append(_written(block, [s for s in block.sources if _number(s) in named], kept))
        return b"".join(written)


def take_apart(report: bytes) -> Whole:
    """A report's parts; raises ValueError for bytes that are no report of single launches."""
    if not report.startswith(MAGIC):
        raise ValueError("no Nsight Compute report")
    at = len(MAGIC)
    at += 4 + int.from_bytes(report[at : at + 4], "little")
    return Whole(report[:at], tuple(_blocks(report, at)))


def _blocks(report: bytes, at: int) -> Iterator[_Block]:
    while at < len(report):
        message, at = _record(report, at)
        header = decode("BlockHeader", message)
        if header.num_range_results:
            raise ValueError("a report of ranges can't be taken apart")
        records = []
        counts = header.num_sources, header.num_results
        for _ in range(sum(counts)):
            record, at = _record(report, at)
            records.append(record)
        yield _Block(header, tuple(records[: counts[0]]), tuple(records[counts[0] :]))


def _record(report: bytes, at: int) -> tuple[bytes, int]:
    start = at + 4
    end = start + int.from_bytes(report[at:start], "little")
    if end > len(report):
        raise ValueError("the report is cut short")
    return report[start:end], end


def _source_of(launch: bytes) -> int:
    return int(decode("ProfileResult", launch).source.reference)


def _number(source: bytes) -> int:
    return int(decode("SourceData", source).reference)


def _written(block: _Block, sources: list[bytes], launches: list[bytes]) -> bytes:
    payload = b"".join(map(prefixed, (*sources, *launches)))
    header = type(block.header)()
    header.CopyFrom(block.header)
    header.num_sources, header.num_results = len(sources), len(launches)
    header.payload_size = len(payload)
    return prefixed(header.SerializeToString()) + payload
