"""What a type checker says of the package, and of programs that use it."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

PROGRAM = """
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
from typing_extensions import assert_type

import ringlet

Tree = Dict[str, np.ndarray]


class Tensor:
    '''As PyTorch's and JAX's arrays say where their memory is.'''

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)


async def collectives(group: ringlet.Group, x: np.ndarray, tensor: Tensor) -> None:
    assert_type(group.all_sum(x), np.ndarray)
    assert_type(group.all_sum_(x), np.ndarray)
    assert_type(group.all_sum_async(x).wait(), np.ndarray)
    assert_type(await group.all_mean_async_(x), np.ndarray)
    assert_type(group.all_reduce(x, op="bit_or"), np.ndarray)
    assert_type(group.all_reduce(tensor), Tensor)
    assert_type(group.sum_scatter(x), np.ndarray)
    assert_type(group.all_gather(x), np.ndarray)
    assert_type(group.reduce(x), Optional[np.ndarray])
    assert_type(group.gather_async(x, 1).wait(), Optional[np.ndarray])
    assert_type(group.all_to_all(x), np.ndarray)
    assert_type(group.broadcast_(x, 1), np.ndarray)
    assert_type(group.recv_like(tensor, 1), Tensor)
    assert_type(group.recv_any_(x), int)
    assert_type(group.recv_any([3], "f32").source, int)
    assert_type(group.split(0), Optional[ringlet.Group])
    # They become NumPy's arrays, but a checker learns nothing.
    numbers: List[Any] = [group.all_sum(3.0), group.all_sum(1), group.all_max(np.float32(1)), group.all_gather(b"abc")]
    group.barrier_async(0)  # E: call-arg


def gradients(group: ringlet.Group, tree: Tree, x: np.ndarray) -> None:
    assert_type(ringlet.average_gradients(tree, group, communication_type=ringlet.Wire("int8", feedback=True)), Tree)
    assert_type(ringlet.average_gradients_([x, x], group), List[np.ndarray])
    assert_type(ringlet.clip_grad_norm(tree, 1.0), Tuple[Tree, float])
    updater = ringlet.FsdpUpdater(group, max_norm=1.0)
    assert_type(updater.apply_gradients(tree, tree, ringlet.AdamW(1e-3)), Tuple[Tree, Optional[float]])
    assert_type(ringlet.FullyShard(group).parameters(), Tree)


def training(tree: Tree) -> None:
    def changed(change: ringlet.MembershipChange) -> None:
        assert_type(change.lost, List[int])

    with ringlet.init(elastic=True, connect_timeout=5.0) as group:
        assert_type(group, ringlet.Group)
        state = ringlet.Checkpoint()
        state.add("model", tree)
        trainer = ringlet.ElasticTrainer(group, state, on_change=changed)

        def step(attempt: ringlet.Step) -> None:
            averages = assert_type(attempt.average(tree), Tree)
            attempt.commit(lambda: tree.update(averages))

        trainer.run(step, steps=10, batch=64)
        assert_type(trainer.step(), int)
        least = ringlet.read_min_ranks()
        assert_type(least.ranks, int)
    ringlet.init(rank="0")  # E: arg-type
    ringlet.leave_all()
"""


def mypy(folder, *words):
    # What belongs to other packages is theirs to check; without their types theirs are Any here.
    options = ["--no-implicit-reexport", "--ignore-missing-imports", "--no-error-summary", "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    return done.stdout


def test_the_package_has_types(tmp_path):
    assert mypy(tmp_path, "-p", "ringlet", "--follow-imports", "skip") == ""


def test_a_program_has_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    expected = {number: line.split("# E: ")[1] for number, line in enumerate(PROGRAM.splitlines(), 1) if "# E: " in line}
    said = mypy(tmp_path, "program.py")
    lines = [line for line in said.splitlines() if ": error:" in line]
    found = {int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in lines}
    assert found == expected and len(lines) == len(expected), said
