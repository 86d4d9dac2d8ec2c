"""Where Nsight Compute and Nsight Systems are, and which versions."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from msgspec import Struct

from profkit.core.yaml_files import shipped_yaml


class Tool(Struct, frozen=True):
    """An installed tool: its path and version, (2025, 3, 1) for 2025.3.1; () where it has none."""

    path: str
    version: tuple[int, ...]

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version)) or "unknown"


def find(name: str) -> Tool | None:
    """`ncu` or `nsys`: what PROFKIT_NCU or PROFKIT_NSYS names, else on PATH, else installed."""
    variable = os.environ.get(f"PROFKIT_{name.upper()}", "")
    path = shutil.which(variable) if variable else installed(name)
    return Tool(path, _version(path)) if path else None


def installed(name: str) -> str | None:
    """A tool's path: what is on PATH, else where CUDA's tools are installed; None without it."""
    if path := shutil.which(name):
        return path
    patterns = shipped_yaml("profkit.capture", "tools.yaml")[name]
    files = (file for pattern in patterns for file in sorted(Path("/").glob(pattern[1:]))[::-1])
    return next((str(file) for file in files if os.access(file, os.X_OK)), None)


def installed_version(package: str) -> str | None:
    """The version of an installed Python package; None where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _version(path: str) -> tuple[int, ...]:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.search(r"\b(20\d\d)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, match.groups())) if match else ()
