"""Copies of the program's folder, one for each run."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import BadInput, EnvironmentProblem

_LARGEST = 2 << 30  # bytes, chosen: copied in seconds
_REMEDY = "leave out --in-copy"
_COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def check_size(folder: Path) -> None:
    """Raise BadInput for a folder that is too large to copy."""
    found = (path.lstat() for path in folder.rglob("*"))
    size = sum(each.st_size for each in found if stat.S_ISREG(each.st_mode))
    if size > _LARGEST:
        raise BadInput(f"{folder}: {size / 1e9:.1f} GB are too much to copy", _REMEDY)


def copy_folder(folder: Path, copy: Path) -> None:
    """Copy a folder without its pipes, sockets and devices; links lead where they lead from there.

    Raises EnvironmentProblem for what can't be read or written.
    """
    try:
        shutil.copytree(folder, copy, symlinks=True, ignore=_others)
    except shutil.Error as error:
        source, _, reason = error.args[0][0]
        raise EnvironmentProblem(f"{source}: can't be copied: {reason}", _REMEDY) from error
    except OSError as error:
        raise EnvironmentProblem(f"{folder}: can't be copied: {error}", _REMEDY) from error
    for link in _links(copy):
        place = folder.joinpath(*link.relative_to(copy).parts).parent
        end = Path(os.path.normpath(place / link.readlink()))
        is_inside = end == folder or folder in end.parents
        if link.readlink().is_absolute() or not is_inside:
            link.unlink()
            link.symlink_to(copy / end.relative_to(folder) if is_inside else end)


def _others(folder: str, names: list[str]) -> set[str]:
    modes = ((name, Path(folder, name).lstat().st_mode) for name in names)
    return {name for name, mode in modes if stat.S_IFMT(mode) not in _COPIED}


def _links(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        yield from filter(Path.is_symlink, (Path(root, name) for name in (*folders, *files)))
