"""Programs of Python's that another one runs in its own process."""

from __future__ import annotations

import importlib.util
import pathlib
import runpy
import sys
from typing import List, Optional


def run_program(arguments: List[str], caller: str) -> None:
    """Runs FILE ARGUMENTS..., or -m MODULE ARGUMENTS..., as Python does. Exits with code 2 where there is no such program."""
    if arguments[0] == "-m":
        sys.path.insert(0, "")
    missing = _missing(arguments)
    if missing is not None:
        print(f"{caller}: {missing}", file=sys.stderr)
        sys.exit(2)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path.insert(0, str(pathlib.Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


def _missing(arguments: List[str]) -> Optional[str]:
    """Why there is nothing to run, where that can be said before it runs."""
    if arguments[0] != "-m":
        program = pathlib.Path(arguments[0])
        found = (program / "__main__.py").exists() if program.is_dir() else program.exists()
        return None if found else f"there is no program '{arguments[0]}'"
    try:
        spec = importlib.util.find_spec(arguments[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{arguments[1]}.__main__")
    except ModuleNotFoundError as error:
        # The import of another module may have failed in a package that is there.
        if error.name is None or not f"{arguments[1]}.".startswith(f"{error.name}."):
            raise
        spec = None
    return None if spec is not None else f"there is no module '{arguments[1]}' that can be run"
