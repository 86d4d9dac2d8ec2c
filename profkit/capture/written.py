"""The user's files that runs of a program changed, put back as they were (`trial.child.writes`)."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from profkit.core.typed_file import Model

_OTHERS = {"__pycache__", ".git", ".venv", "node_modules"}
_OF_SQLITE = ("-wal", "-shm", "-journal")
_MOST_FILES = 20_000  # in a program's folders, chosen: listed in half a second
_MOST_COPIES, _MOST = 2000, 1 << 26  # files and bytes of copies, chosen: 0.3 s
Files = dict[Path, tuple[int, int]]
State = Literal["as before", "changed", "removed", "new"]


class Written(Model, frozen=True, kw_only=True):
    """A file that runs in place wrote: put back "as before", "changed" where it was too large to
    keep or can't be put back, or no hook heard who wrote it, where `copy` is what it was before,
    "removed" as it was not there, or "new" where that failed, no hook heard, or it is in no folder
    of the program."""

    path: str
    state: State
    copy: str = ""


def listed(*roots: Path, but: Path) -> Files:
    """Sizes and times of the files in a program's folders, but for caches and what is in the folder
    `but`; none of too many, or of where all of a system's are."""
    files: Files = {}
    if {Path("/"), Path(tempfile.gettempdir()).resolve()} & {*roots}:
        return files
    for root in roots:
        for folder, folders, names in os.walk(root):
            inside = Path(folder).relative_to(root).parts
            known = [each for each in folders if not _is_cached(root, (*inside, each))]
            folders[:] = (each for each in known if Path(folder, each) != but)
            for path in (Path(folder, name) for name in names):
                with suppress(OSError):
                    status = path.lstat()
                    files[path] = status.st_size, status.st_mtime_ns
                if len(files) > _MOST_FILES:
                    return {}
    return files


def copy_small(files: Files, folder: Path) -> None:
    """Copy the files to a folder, the smallest first, as far as these are few: what no hook hears
    may change them."""
    total = 0
    for path, (size, _) in sorted(files.items(), key=lambda each: each[1])[:_MOST_COPIES]:
        total += size
        if total > _MOST:
            return
        if path.is_file() and not path.is_symlink():
            place = _within(folder / "copies", path)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)
            except OSError:
                place.unlink(missing_ok=True)


def _within(folder: Path, path: Path) -> Path:
    return folder / path.relative_to("/")


def put_back(
    folder: Path, here: Path, *sources: Path, before: Files | None = None
) -> tuple[Written, ...]:
    """Put back what was kept in a folder, and say what became of each file that runs wrote. New
    ones are removed, and folders made for them, where they are `here` or in a folder of the
    program's `sources`; caches and temporary ones are left. What else is not as it was `before` may
    be the user's own work: it is left, and a copy of what was there, as far as there is one."""
    roots = (here, *sources)

    def written(path: Path, state: State, copy: str = "") -> Written:
        shown = path.relative_to(here) if here in path.parents else path
        return Written(path=str(shown), state=state, copy=copy)

    aside: list[Path] = []

    def handed(saved: Path, path: Path) -> str:
        """Where a copy is from now on; "" without one."""
        if not os.path.lexists(saved):
            return ""
        if not aside:
            aside.append(Path(tempfile.mkdtemp(prefix="profkit-kept-")))
        place = _within(aside[0], path)
        place.parent.mkdir(parents=True, exist_ok=True)
        return str(shutil.move(saved, place))

    rows = []
    for saved, path in [each for each in _pairs(folder / "kept") if not _is_dated_back(*each)]:
        is_back = _is_put_back(saved, path, _within(folder / "inodes", path))
        state: State = "as before" if is_back else "changed"
        rows.append(written(path, state, "" if is_back else handed(saved, path)))
    large = (path for saved, path in _pairs(folder / "large") if not _is_same(saved, path))
    rows += [written(path, "changed") for path in large]
    new = [path for _, path in _pairs(folder / "new") if path.is_file() or path.is_symlink()]
    own = [path for path in new if _is_own(path, roots, folder)]
    rows += [written(path, "removed" if _is_removed(path) else "new") for path in own]
    elsewhere = (path for path in new if path not in own and not _is_cache(path, roots))
    rows += [written(path, "new") for path in elsewhere]
    made = [path.parent for _, path in _pairs(folder / "made") if _is_of(path.parent, roots)]
    for path in sorted(made, reverse=True):  # the inner ones first
        with suppress(OSError):  # not empty, or gone
            path.rmdir()
    heard = {path for kind in ("kept", "large", "new") for _, path in _pairs(folder / kind)}
    heard |= {Path(f"/proc/self/fd/{number}").resolve() for number in (1, 2)}  # this program's own
    known = before or {}
    now = listed(*roots, but=folder.parent) if known else {}
    for path in sorted({*known, *now} - heard):
        saved = _within(folder / "copies", path)
        if path not in known:
            rows.append(written(path, "new"))
        elif now.get(path) != known[path] and not _is_same(saved, path):
            rows.append(written(path, "changed", handed(saved, path)))
    return tuple(rows)


def _is_own(path: Path, roots: Sequence[Path], folder: Path) -> bool:
    """Whether a new file is removed: SQLite's part of a database is where that is put back."""
    ends = filter(path.name.endswith, _OF_SQLITE)
    wholes = [path.with_name(path.name.removesuffix(end)) for end in ends]
    places = [(kind, _within(folder / kind, each)) for kind in ("large", "kept") for each in wholes]
    kinds = [kind for kind, place in places if os.path.lexists(place)]
    return kinds[0] == "kept" if kinds else _is_of(path, roots)


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
    home = Path.home().resolve()
    is_users = root == home or root in home.parents
    return is_hidden and (is_users or "cache" in "/".join(folders).lower())


def _is_cache(path: Path, roots: Sequence[Path]) -> bool:
    parents = {*path.parents}
    is_temporary = Path(tempfile.gettempdir()) in parents
    return is_temporary or not parents.isdisjoint(roots) or not _is_of(path, [Path("/")])


def _is_removed(path: Path) -> bool:
    with suppress(OSError):
        path.unlink()
    return not path.exists()


def _is_put_back(saved: Path, path: Path, inode: Path) -> bool:
    """Whether a file could be put back: in place, for its other names too, where it has the
    `inode` that it had."""
    part = path.with_name(f".{path.name}.profkit")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if inode.is_symlink() and path.is_file() and not path.is_symlink():
            status = path.stat()
            is_named_again = status.st_nlink > 1
            if is_named_again and inode.readlink() == Path(f"{status.st_dev}:{status.st_ino}"):
                shutil.copy2(saved, path)
                return True
        shutil.copy2(saved, part, follow_symlinks=False)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        return False
    return True


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each file in a folder, and the path that it stands for."""
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            saved = Path(root, name)
            yield saved, Path("/", saved.relative_to(folder))


def _is_dated_back(saved: Path, path: Path) -> bool:
    """Whether a file is the same, written again maybe; its times and mode are put back."""
    if is_same := _is_same(saved, path):
        with suppress(OSError):
            shutil.copystat(saved, path, follow_symlinks=False)
    return is_same


def _is_same(saved: Path, path: Path) -> bool:
    try:
        if saved.is_symlink():
            return path.is_symlink() and saved.readlink() == path.readlink()
        before, now = saved.lstat(), path.lstat()
        is_as_before = (before.st_size, before.st_mtime_ns) == (now.st_size, now.st_mtime_ns)
        return is_as_before or filecmp.cmp(saved, path, shallow=False)  # as of locks
    except OSError:
        return False
