"""The command `ringlet`, which is inside the package: `python -m ringlet`."""

import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).absolute().parent / "bin" / "ringlet"


def main() -> None:
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])


if __name__ == "__main__":
    main()
