"""Keeps files as they were before the program's first run changes them.

Any Python from 3.9 on loads this file at its start, as a hook of `sys`, without profkit, and as one
of libraries that write files without Python's `open`. PROFKIT_KEPT is a folder: what was at PATH is
in `kept/PATH`, or its size and time in `large/PATH` where it is too large, its inode in
`inodes/PATH`; `new/PATH` was not there before, nor the folder PATH of `made/PATH/.profkit`.
`profkit.capture.written` puts it back.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from typing import Any

MOST = 1 << 30  # bytes in all, chosen: copied in a second
_KINDS = ("kept", "large", "new")
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND
# Of each event, the places of the paths that change, and of the folders that these are in.
_EVENTS: dict[str, tuple[slice, slice]] = {
    "open": (slice(1), slice(0)),
    "os.mkdir": (slice(1), slice(2, 3)),
    "os.rename": (slice(2), slice(2, 4)),
    "os.remove": (slice(1), slice(1, 2)),
    "os.link": (slice(1, 2), slice(3, 4)),
    "os.symlink": (slice(1, 2), slice(2, 3)),
    "os.truncate": (slice(1), slice(0)),
    "os.chmod": (slice(1), slice(2, 3)),
    "os.utime": (slice(1), slice(3, 4)),
    "sqlite3.connect": (slice(1), slice(0)),
}
_OF_NAMES = ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink")  # links themselves
_WRITERS = {
    "torch.serialization": "_open_zipfile_writer",
    "torch.jit._script": "RecursiveScriptModule.save",
    "torch.autograd.profiler": "profile.export_chrome_trace",
    "safetensors.torch": "save_file",
    "safetensors.numpy": "save_file",
}
_NO_FILES = ("/dev", "/proc", "/sys")
_OF_SQLITE = ("", "-wal", "-shm", "-journal")  # what it writes: a part without the others is none
_CHUNK = 1 << 20


def install(module: Any) -> None:
    """Listen to this process, or have it hear of what a library writes."""
    folder = os.environ.get("PROFKIT_KEPT", "")
    if module is sys and folder:
        hear = _Keeper(folder, os.environ["PROFKIT_OWN"]).hear

        def hook(event: str, arguments: tuple[Any, ...]) -> None:  # faster than a method
            if event in _EVENTS:
                hear(event, arguments)

        sys.addaudithook(hook)
        return
    *kinds, name = _WRITERS.get(module.__name__, "").split(".")
    holder = functools.reduce(lambda part, kind: getattr(part, kind, None), kinds, module)
    if function := getattr(holder, name, None):

        @functools.wraps(function)
        def writing(*args: Any, **kwargs: Any) -> Any:
            for value in (*args, *kwargs.values()):
                if isinstance(value, (str, os.PathLike)):
                    sys.audit("open", os.fspath(value), None, os.O_WRONLY)
            return function(*args, **kwargs)

        setattr(holder, name, writing)


class _Keeper:
    def __init__(self, folder: str, place: str) -> None:
        self._folder, self._known, self._in_use = folder, set[str](), set[str]()
        os.close(os.open(f"{folder}/since", os.O_CREAT))  # by the first process
        self._since = os.stat(f"{folder}/since").st_mtime
        self._left_out = (os.path.dirname(folder), os.path.realpath(place), *_NO_FILES)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Keep what is at the paths of an event, before it is changed."""
        if event == "open" and not (arguments[2] or 0) & _CHANGING:
            return
        is_folder = event == "os.mkdir"
        paths, folders = (arguments[places] for places in _EVENTS[event])
        if event == "sqlite3.connect":
            name = os.fsdecode(paths[0])
            if name.startswith("file:"):  # an address
                name = name[len("file:") :].partition("?")[0]
            paths = tuple(name + end for end in _OF_SQLITE)
            if any(map(os.path.lexists, paths[1:3])):  # another process has it open, perhaps
                self._in_use.add(os.path.realpath(name))
                paths = paths[:1]
        known = []
        for number, path in enumerate(paths):
            if isinstance(path, (str, bytes)):
                try:
                    opened = folders[number] if number < len(folders) else -1
                    known.append(_resolved(os.fsdecode(path), opened, event in _OF_NAMES))
                    is_moved = os.path.isdir(known[0]) and not os.path.islink(known[0])
                    if event != "os.rename" or not is_moved:
                        self._keep(known[-1], is_folder)
                    elif number:
                        self._keep_folder(*known)
                except (OSError, ValueError):  # the program will meet it, too
                    pass

    def _keep_folder(self, path: str, other: str) -> None:
        """Keep what is in a folder, and note what will be in it by its other name."""
        for root, _, names in os.walk(path):
            there = other + root[len(path) :]
            self._keep(there, True)
            for name in names:
                self._keep(f"{root}/{name}", False)
                self._keep(f"{there}/{name}", False)

    def _keep(self, path: str, is_folder: bool) -> None:
        if path in self._known:
            return
        is_own = any(path == each or path.startswith(each + "/") for each in self._left_out)
        known = (os.path.lexists(f"{self._folder}/{kind}{path}") for kind in _KINDS)
        if is_folder and not is_own and not os.path.lexists(path):
            os.close(os.open(self._place("made", f"{path}/.profkit"), os.O_CREAT))
        elif not (is_folder or is_own or "/__pycache__/" in path or any(known)):
            self._copy(path)
        self._known.add(path)

    def _copy(self, path: str) -> None:
        """Have it known as a whole, or not at all: a process may be killed now."""
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            os.close(os.open(self._place("new", path), os.O_CREAT))
            return
        if min(status.st_mtime, status.st_ctime) > self._since:
            return  # made since, by another process
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(path), self._place("kept", path))
        if not stat.S_ISREG(status.st_mode):
            return
        is_kept = path not in self._in_use and self._has_room(status.st_size)
        kind = "kept" if is_kept else "large"
        place = self._place(kind, path)
        part = f"{self._folder}/{os.getpid()}"
        with open(path, "rb") as source, open(part, "wb") as target:
            while kind == "kept" and (chunk := source.read(_CHUNK)):
                target.write(chunk)
            target.truncate(status.st_size)
        os.chmod(part, stat.S_IMODE(status.st_mode))
        os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.link(part, place)  # of two processes the first
        os.unlink(part)
        os.symlink(f"{status.st_dev}:{status.st_ino}", self._place("inodes", path))

    def _place(self, kind: str, path: str) -> str:
        place = f"{self._folder}/{kind}{path}"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def _has_room(self, size: int) -> bool:
        """Whether a file of this size is not too large, which is noted."""
        disk = os.statvfs(self._folder)
        with open(f"{self._folder}/sizes", "a+", encoding="ascii") as sizes:
            sizes.seek(0)
            total = size + sum(map(int, sizes))
            has_room = total <= MOST and 2 * size < disk.f_bavail * disk.f_frsize
            if has_room:
                sizes.write(f"{size}\n")
        return has_room


def _resolved(path: str, opened: int, is_name: bool) -> str:
    """The path without links, within an open folder where there is one."""
    if opened >= 0:
        path = os.path.join(f"/proc/self/fd/{opened}", path)
    if not is_name:
        return os.path.realpath(path)
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
