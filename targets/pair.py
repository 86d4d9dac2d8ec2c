"""A defect/fix pair of kernels/pairs, by name: profkit profile targets/pair.py -- NAME"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernels import pair
from profkit import asked
from profkit.core.suggestion import did_you_mean


def known(name: str) -> str:
    """A pair's name; raises ArgumentTypeError, which argparse reports, for another one."""
    if name not in pair.names():
        meant = did_you_mean(name, pair.names(), otherwise="they are in kernels/pairs")
        raise argparse.ArgumentTypeError(f"no pair {name!r}, {meant}")
    return name


options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
options.add_argument("name", type=known, metavar="NAME", help=", ".join(pair.names()))

target = pair.read(asked(options).name).target()

if __name__ == "__main__":
    target.main(options=options)
