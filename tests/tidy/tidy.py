"""Checks what compilers and formatters do not see: lengths, words, includes, versions, links, dead declarations."""

import argparse
import pathlib
import sys

from checks import CHECKS
from tree import read_tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python3 tests/tidy/tidy.py --only includes links")
    parser.add_argument(
        "--root", default=str(pathlib.Path(__file__).resolve().parents[2]), help="the repository (the one that this file is in)"
    )
    parser.add_argument("--only", nargs="+", choices=sorted(CHECKS), metavar="CHECK", help="only these: " + ", ".join(sorted(CHECKS)))
    options = parser.parse_args()
    tree = read_tree(options.root)
    count = 0
    for name in options.only or CHECKS:
        for finding in CHECKS[name](tree):
            print(f"{finding} [{name}]")
            count += 1
    print(f"tidy: {count} findings in {len(tree.texts)} files" if count else f"tidy: {len(tree.texts)} files are as they should be")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
