"""Runs tests on several ranks, which are real processes that `ringlet launch` starts.

    @on_ranks(1, 2, 4)
    def test_something(group): ...

    @on_torch_ranks(2)
    def test_another(): ...

are called on each rank, the first with its group, the second in a process group of torch's. As a program this file is such a rank:
python ranks.py MODULE TEST [torch]
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
    return run("ringlet", "launch", "-n", ranks, "--", *command, **options)


def torchrun(*words):
    """Runs torch's launcher, and returns it with its output."""
    return run("torch.distributed.run", *words)


def run(module, *words, **options):
    """Runs a module as a program, and returns it with its output."""
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=options.pop("stderr", subprocess.STDOUT),
        text=True,
        timeout=LIMIT_S,
        env=settings(options.pop("environment", {})),
        stdin=subprocess.DEVNULL,
        **options,
    )


def run_program(text, *arguments):
    """Runs the text of a program, which must succeed and say nothing on stderr, and returns what it printed."""
    done = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert done.stderr == ""
    return done.stdout


def settings(more):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **more}
    # A rank of NumPy needs no threads of its own for the small arrays of these tests.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    environment.setdefault("OMP_NUM_THREADS", "1")
    return environment


def on_torch_ranks(*counts, **options):
    return on_ranks(*counts, words=["torch"], **options)


def on_ranks(*counts, words=(), **options):
    import pytest

    def decorate(function):
        if RANK_OF_TEST:
            return function

        @pytest.mark.parametrize("ranks", counts)
        def test(ranks):
            done = launch(ranks, sys.executable, __file__, function.__module__, function.__name__, *words, **options)
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

    module, name, *words = sys.argv[1:]
    function = getattr(importlib.import_module(module), name)
    if words:
        in_process_group(function)
        return
    with ringlet.init(strict=True) as group:
        function(group)
        group.barrier()


def in_process_group(function):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if not entry_points_work():
        import ringlet.torch  # noqa: F401
    dist.init_process_group("ringlet")
    function()
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def entry_points_work():
    """Whether this torch finds back ends by itself."""
    import torch

    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 14)


if __name__ == "__main__":
    main()
