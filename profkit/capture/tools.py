"""Where Nsight Compute and Nsight Systems are, and which versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_FOLDERS = {
    "ncu": ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/bin/ncu"),
    "nsys": (
        "/opt/nvidia/nsight-systems/*/bin/nsys",
        "/usr/local/cuda*/bin/nsys",
        "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
    ),
}


@dataclass(frozen=True)
class Tool:
    """An installed tool: its path and version, (2025, 3, 1) for 2025.3.1; () where it won't say."""

    name: str
    path: str
    version: tuple[int, ...]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version)) or "unknown"


def find(name: str) -> Tool | None:
    """`ncu` or `nsys`: what PROFKIT_NCU or PROFKIT_NSYS names, else on PATH, else installed."""
    named = os.environ.get(f"PROFKIT_{name.upper()}", "")
    path = shutil.which(named or name)
    if path is None and not named:
        installed = [
            str(found)
            for pattern in _FOLDERS[name]
            for found in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
        ]
        path = _first(installed)
    return Tool(name, path, _version(path)) if path else None


def installed_version(package: str) -> str | None:
    """The version of an installed Python package; None where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _first(paths: list[str]) -> str | None:
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _version(path: str) -> tuple[int, ...]:
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(r"\b(20\d\d)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, match.groups())) if match else ()
