"""Runs tests on several ranks, which are real processes that `ringlet launch` starts.

    @on_ranks(1, 2, 4)
    def test_something(group): ...

is called on each rank, with its group. As a program this file is such a rank: python ranks.py MODULE TEST
"""

import functools
import importlib
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# A busy machine is slow to start interpreters.
LIMIT_S = 240


def launch(ranks, *command, **options):
    """Starts a program on so many ranks, and returns the finished `ringlet launch` with its output."""
    words = [sys.executable, "-m", "ringlet", "launch", "-n", str(ranks), "--", *map(str, command)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **options.pop("environment", {})}
    # A rank of NumPy needs no threads of its own for the small arrays of these tests.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    return subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        env=environment,
        stdin=subprocess.DEVNULL,
        **options,
    )


def on_ranks(*counts):
    import pytest

    def decorate(function):
        if RANK_OF_TEST:
            return function

        @pytest.mark.parametrize("ranks", counts)
        def test(ranks):
            done = launch(ranks, sys.executable, __file__, function.__module__, function.__name__)
            assert done.returncode == 0, done.stdout

        # Not functools.wraps(), which would have pytest look for a fixture named as the function's argument.
        functools.update_wrapper(test, function, assigned=("__module__", "__name__", "__doc__"), updated=())
        del test.__wrapped__
        return test

    return decorate


RANK_OF_TEST = False


def main():
    # Decorators in the tests' modules are those of the module ranks, not of this program.
    sys.path.insert(0, str(FOLDER))
    import ranks

    ranks.RANK_OF_TEST = True
    import ringlet

    module, name = sys.argv[1:]
    function = getattr(importlib.import_module(module), name)
    with ringlet.init(strict=True) as group:
        function(group)
        group.barrier()


if __name__ == "__main__":
    main()
