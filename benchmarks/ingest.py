"""profkit's ingest alone: check and read a report, seconds on stderr.

python benchmarks/ingest.py REPORT
"""

import sys
import time
from pathlib import Path

import ncu_report  # noqa: F401  (the vendor's import is not ingest)
import zstandard  # noqa: F401

from profkit.report.quantities import request
from profkit.report.reader import read

wanted = request()
started = time.perf_counter()
read(Path(sys.argv[1]), wanted)
print(time.perf_counter() - started, file=sys.stderr)
