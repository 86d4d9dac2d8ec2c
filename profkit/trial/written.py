"""The user's files that runs of a program changed, put back as they were (`child.writes`)."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from profkit.trial.trial_file import State, Written


def put_back(folder: Path, here: Path, *sources: Path) -> tuple[Written, ...]:
    """Put back what was kept in a folder, and say what became of each file that runs wrote. New
    ones are removed, and folders made for them, where they are `here` or in a folder of the
    program's `sources`; hidden and temporary ones are caches."""
    roots = (here, *sources)

    def written(path: Path, state: State, copy: str = "") -> Written:
        shown = path.relative_to(here) if here in path.parents else path
        return Written(path=str(shown), state=state, copy=copy)

    changed = [each for each in _pairs(folder / "kept") if not _is_same(*each)]
    copies = [(path, _put_back(saved, path)) for saved, path in changed]
    rows = [written(path, "changed" if copy else "as before", copy) for path, copy in copies]
    large = (path for saved, path in _pairs(folder / "large") if not _is_same(saved, path))
    rows += [written(path, "changed") for path in large]
    new = [path for _, path in _pairs(folder / "new") if path.is_file()]
    own = [path for path in new if _is_of(path, roots)]
    rows += [written(path, "removed" if _is_removed(path) else "new") for path in own]
    elsewhere = (path for path in new if path not in own and not _is_cache(path, roots))
    rows += [written(path, "new") for path in elsewhere]
    made = [path.parent for _, path in _pairs(folder / "made") if _is_of(path.parent, roots)]
    for path in sorted(made, reverse=True):  # the inner ones first
        with suppress(OSError):  # not empty, or gone
            path.rmdir()
    return tuple(rows)


def _is_of(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path is in one of some folders, and in no hidden one of it."""
    rests = [path.relative_to(root).parts[:-1] for root in roots if root in path.parents]
    return any(not any(part.startswith(".") for part in rest) for rest in rests)


def _is_cache(path: Path, roots: Sequence[Path]) -> bool:
    parents = {*path.parents}
    is_temporary = Path(tempfile.gettempdir()) in parents
    return is_temporary or not parents.isdisjoint(roots) or not _is_of(path, [Path("/")])


def _is_removed(path: Path) -> bool:
    with suppress(OSError):
        path.unlink()
    return not path.exists()


def _put_back(saved: Path, path: Path) -> str:
    """Put a file back; where that fails, the path where it is kept from now on."""
    part = path.with_name(f".{path.name}.profkit")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1:
            shutil.copy2(saved, path)  # for its other names, too
            return ""
        shutil.copy2(saved, part, follow_symlinks=False)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        return str(saved.replace(Path(tempfile.mkdtemp(prefix="profkit-kept-"), path.name)))
    return ""


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each file in a folder, and the path that it stands for."""
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            saved = Path(root, name)
            yield saved, Path("/", saved.relative_to(folder))


def _is_same(saved: Path, path: Path) -> bool:
    try:
        if saved.is_symlink():
            return path.is_symlink() and saved.readlink() == path.readlink()
        before, now = saved.lstat(), path.lstat()
        is_as_before = (before.st_size, before.st_mtime_ns) == (now.st_size, now.st_mtime_ns)
        return is_as_before or filecmp.cmp(saved, path, shallow=False)  # as of locks
    except OSError:
        return False
