"""Files moved into the archive of attention come back as they were."""

from __future__ import annotations

import json
import lzma
import random
import shutil
from pathlib import Path

import pytest
import zstandard

from kernels.attention_archive import ARCHIVE, complete, move
from profkit.core.regular_file import digest

LIBRARY = random.Random(1).randbytes(300_000)


def compressed(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.ZstdCompressor().compress(data))
    return path


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_what_is_moved_comes_back_and_takes_little(tmp_path: Path) -> None:
    folder, out = tmp_path / "gpu", tmp_path / "out"
    compressed(folder / "sdpa_s512" / "run" / "sdpa_s512.ncu-repz", LIBRARY)
    alone = compressed(folder / "math.ncu-repz", b"math" + LIBRARY)
    rung = compressed(folder / "ladder" / "rung.ncu-repz", b"rung" + LIBRARY)
    entry = {"sha256": digest(rung), "bytes": rung.stat().st_size, "launches": 1}
    (folder / "ladder" / "manifest.json").write_text(json.dumps({"files": {rung.name: entry}}))
    export = folder / "math.raw.csv.xz"
    export.write_bytes(lzma.compress(b"a,b\n"))
    move(folder, [alone, rung])
    move(folder, [export])
    assert not [path for path in (alone, rung, export) if path.exists()]
    assert (folder / ARCHIVE).stat().st_size < 10_000
    complete(folder, out)
    again = zstandard.ZstdDecompressor().decompress((out / "math.ncu-repz").read_bytes())
    assert again == b"math" + LIBRARY
    assert (out / "math.raw.csv").read_bytes() == b"a,b\n"
    plain = out / "ladder" / "rung.ncu-rep"
    assert plain.read_bytes() == b"rung" + LIBRARY
    (listed,) = json.loads((out / "ladder" / "manifest.json").read_text())["files"].items()
    size = len(plain.read_bytes())
    assert listed == (plain.name, {"sha256": digest(plain), "bytes": size, "launches": 1})
    assert not (out / ARCHIVE).exists()
