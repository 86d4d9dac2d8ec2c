"""A made GPU for tests: a driver library whose work is done at a time.

Work is submitted in a microsecond and done later, as on a GPU: who does not wait for it reads a
wrong time. The time is that of the driver's `perf_counter`, which stands still but for that.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

_DRIVER = r"""
#include <string.h>
static double now, busy_until;
double perf_counter(void) { return now += 5e-8; }
void launch(double seconds) {
    now += 1e-6;
    busy_until = (busy_until > now ? busy_until : now) + seconds;
}
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuCtxGetCurrent(void **context) { *context = &busy_until; return 0; }
int cuCtxSynchronize(void) { now = now > busy_until ? now : busy_until; return 0; }
int cuDeviceGetName(char *name, int size, int d) { strncpy(name, "Made GPU", size); return 0; }
int cuDeviceGetUuid(unsigned char *uuid, int d) { memset(uuid, 7, 16); return 0; }
int cuDeviceTotalMem_v2(unsigned long *bytes, int d) { *bytes = 1UL << 30; return 0; }
int cuDeviceGetAttribute(int *value, int code, int d) {
    *value = code == 16 ? 132 : code == 75 ? 9 : code == 76 ? 0 : -1; return 0;
}
int cuProfilerStart(void) { return 0; }
int cuProfilerStop(void) { return 0; }
"""


def make_driver(folder: Path) -> Path:
    """The driver's library; load it with ctypes, and CUDA counts as started."""
    return _compiled(folder / "libcuda.so.1", _DRIVER)


def _compiled(library: Path, source: str) -> Path:
    soname = f"-Wl,-soname,{library.name}"
    command = ["cc", "-shared", "-fPIC", soname, "-x", "c", "-o", str(library), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return library
