"""`python -m benchmarks [FAMILY ...]`: run families, all of them by default."""

from __future__ import annotations

import argparse
import sys

from benchmarks import (  # noqa: F401 - they register families
    dataflow,
    pipelines,
    placement,
    placement_growth,
    solvers,
)
from benchmarks.registry import FAMILIES


def main() -> int:
    """Run the families named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="*", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--seconds", type=float, default=10.0, help="per search")
    options = parser.parse_args()
    unknown = [name for name in options.family if name not in FAMILIES]
    if unknown:
        parser.error(f"unknown family {unknown[0]}; known: {', '.join(FAMILIES)}")
    for name in options.family or FAMILIES:
        FAMILIES[name](options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
