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

_MOST_FILES = 20_000  # in a program's folders, chosen: listed in half a second
_MOST = 1 << 26  # bytes of their copies in all, chosen: a tenth of a second
_OTHERS = {"__pycache__", ".git", ".venv", "node_modules"}
Files = dict[Path, tuple[int, int]]


def listed(*roots: Path) -> Files:
    """Sizes and times of the files in a program's folders, but for caches; none of too many."""
    files: Files = {}
    for root in roots:
        for folder, folders, names in os.walk(root):
            inside = Path(folder).relative_to(root).parts
            folders[:] = (each for each in folders if not _is_cached(root, (*inside, each)))
            for path in (Path(folder, name) for name in names):
                with suppress(OSError):
                    status = path.lstat()
                    files[path] = status.st_size, status.st_mtime_ns
            if len(files) > _MOST_FILES:
                return {}
    return files


def copy_small(files: Files, folder: Path) -> None:
    """Copy the files to a folder, the smallest first, as far as these are few bytes: what no hook
    hears may change them."""
    total = 0
    for path, (size, _) in sorted(files.items(), key=lambda each: each[1]):
        total += size
        if total > _MOST:
            return
        with suppress(OSError):
            if path.is_file() and not path.is_symlink():
                place = Path(f"{folder}/copies{path}")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def put_back(
    folder: Path,
    here: Path,
    *sources: Path,
    before: Files | None = None,
) -> tuple[Written, ...]:
    """Put back what was kept in a folder, and say what became of each file that runs wrote. New
    ones are removed, and folders made for them, where they are `here` or in a folder of the
    program's `sources`; caches and temporary ones are left. What else is not as it was `before` may
    be the user's own work: it is left, and a copy of what was there, as far as there is one."""
    roots = (here, *sources)

    def written(path: Path, state: State, copy: str = "") -> Written:
        shown = path.relative_to(here) if here in path.parents else path
        return Written(path=str(shown), state=state, copy=copy)

    changed = [each for each in _pairs(folder / "kept") if not _is_same(*each)]
    copies = [(path, _put_back(saved, path)) for saved, path in changed]
    rows = [written(path, "changed" if copy else "as before", copy) for path, copy in copies]
    large = (path for saved, path in _pairs(folder / "large") if not _is_same(saved, path))
    rows += [written(path, "changed") for path in large]
    new = [path for _, path in _pairs(folder / "new") if path.is_file() or path.is_symlink()]
    own = [path for path in new if _is_of(path, roots)]
    rows += [written(path, "removed" if _is_removed(path) else "new") for path in own]
    elsewhere = (path for path in new if path not in own and not _is_cache(path, roots))
    rows += [written(path, "new") for path in elsewhere]
    made = [path.parent for _, path in _pairs(folder / "made") if _is_of(path.parent, roots)]
    for path in sorted(made, reverse=True):  # the inner ones first
        with suppress(OSError):  # not empty, or gone
            path.rmdir()
    heard = {path for kind in ("kept", "large", "new") for _, path in _pairs(folder / kind)}
    known = before or {}
    for path, state in sorted(listed(*roots).items()) if known else ():
        if path not in heard and path not in known:
            rows.append(written(path, "new"))
        elif path not in heard and known[path] != state:
            rows.append(written(path, "changed", _moved_copy(Path(f"{folder}/copies{path}"))))
    return tuple(rows)


def _is_of(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path is in one of some folders, and in no cache of it."""
    own = (root for root in roots if root in path.parents)
    return any(not _is_cached(root, path.relative_to(root).parts[:-1]) for root in own)


def _is_cached(root: Path, folders: Sequence[str]) -> bool:
    """Whether a path within a folder is a cache's, which others may use: the hidden folders of a
    user's own are, those of a program by their name."""
    if not _OTHERS.isdisjoint(folders):
        return True
    is_hidden = any(name.startswith(".") for name in folders)
    is_any = root in {Path.home(), Path("/")} or "cache" in "/".join(folders).lower()
    return is_hidden and is_any


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
        return _moved_copy(saved)
    return ""


def _moved_copy(saved: Path) -> str:
    """The path where a copy is kept from now on; "" without one."""
    if not saved.exists():
        return ""
    return str(shutil.move(saved, Path(tempfile.mkdtemp(prefix="profkit-kept-"), saved.name)))


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
