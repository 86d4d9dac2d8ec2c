"""The script a user would write instead: the same metrics into a DataFrame, printed.

    python benchmarks/by_hand.py REPORT [--bare] [--import MODULE...]

`--bare` leaves the DataFrame out: the loop over the vendor's reader alone. Prints the loop's
seconds on stderr, and by how many KiB it raised the peak of memory.
"""

import importlib
import resource
import sys
import time
from pathlib import Path

import ncu_report

NAMES = (Path(__file__).parent / "metric_names.txt").read_text(encoding="utf-8").split()


def rows(path: str) -> list[dict[str, object]]:
    context = ncu_report.load_report(path)
    found: list[dict[str, object]] = []
    for result_range in context:
        for action in result_range:
            row = {"kernel": action.name()}
            for name in NAMES:
                metric = action.metric_by_name(name)
                if metric is not None and metric.has_value():
                    row[name] = metric.value()
            found.append(row)
    return found


def main() -> None:
    if "--import" in sys.argv:
        for module in sys.argv[sys.argv.index("--import") + 1 :]:
            importlib.import_module(module)
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    found = rows(sys.argv[1])
    seconds = time.perf_counter() - started
    raised = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - imported
    print(seconds, raised, file=sys.stderr)
    if "--bare" not in sys.argv:
        import pandas as pd

        print(pd.DataFrame(found).to_string())


main()
