"""The user's files that runs of a program changed, put back as they were (`child.writes`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from profkit.trial.trial_file import Written


def put_back(folder: Path) -> tuple[Written, ...]:
    """Put back what was kept in a folder, and say what became of each file that runs wrote; of new
    ones only those in this folder: others are caches."""
    here = Path.cwd()
    written = [Written(path=_shown(path, here), state="as before") for path in _restored(folder)]
    changed = [path for saved, path in _pairs(folder / "large") if not _is_same(saved, path)]
    changed += [path for saved, path in _pairs(folder / "kept") if not _is_same(saved, path)]
    new = [path for _, path in _pairs(folder / "new") if path.is_file() and here in path.parents]
    written += [Written(path=_shown(path, here), state="changed") for path in changed]
    written += [Written(path=_shown(path, here), state="new") for path in new]
    return tuple(written)


def _restored(folder: Path) -> Iterator[Path]:
    for saved, path in _pairs(folder / "kept"):
        if _is_same(saved, path):
            continue
        part = path.with_name(f".{path.name}.profkit")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(saved, part, follow_symlinks=False)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            continue
        yield path


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each file in a folder, and the path that it stands for."""
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            saved = Path(root, name)
            yield saved, Path("/", saved.relative_to(folder))


def _is_same(saved: Path, path: Path) -> bool:
    try:
        before, now = saved.lstat(), path.lstat()
    except OSError:
        return False
    if saved.is_symlink():
        return path.is_symlink() and saved.readlink() == path.readlink()
    return (before.st_size, before.st_mtime_ns) == (now.st_size, now.st_mtime_ns)


def _shown(path: Path, here: Path) -> str:
    return str(path.relative_to(here) if here in path.parents else path)
