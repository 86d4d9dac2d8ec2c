"""profkit's ingest alone: check and read a report.

python benchmarks/ingest.py REPORT

Prints seconds on stderr, and by how many KiB it raised the peak of memory.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np  # noqa: F401  (imports are not ingest)
import zstandard  # noqa: F401

from profkit.report.quantities import request
from profkit.report.reader import read

wanted = request()
imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
raw = read(Path(sys.argv[1]), wanted)
seconds = time.perf_counter() - started
raised = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - imported
print(seconds, raised, file=sys.stderr)
