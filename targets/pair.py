"""A defect/fix pair of kernels/pairs, by name: profkit profile targets/pair.py -- NAME"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernels import pair
from profkit import asked

options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
options.add_argument("name", choices=pair.names(), metavar="NAME", help=", ".join(pair.names()))

target = pair.read(asked(options).name).target()

if __name__ == "__main__":
    target.main(options=options)
