"""The Python in the documents, which readers copy, runs as it stands there."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Tuple

import pytest
from ranks import LIMIT_S, entry_points_work, launch, settings

ROOT = Path(__file__).resolve().parents[2]
PROSE = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("python/**/*.md")]
ALONE = 0


class Block(NamedTuple):
    before: str  # what the document takes for granted. It imports nothing that the block has to import itself
    after: str  # what holds then, on each rank
    needs: Tuple[str, ...] = ()  # modules
    ranks: int = 2  # or ALONE: a program that starts its ranks itself


def is_there(module):
    return importlib.util.find_spec(module) is not None


TRAINING = """
import numpy as np
import ringlet

parameters = {"weights": np.zeros(2)}
optimizer = ringlet.AdamW(0.01)
optimizer.init(parameters)

def batch_of(number):
    return np.random.default_rng(number).normal(size=(256, 2))

def gradients_of(parameters, inputs):
    errors = inputs @ (parameters["weights"] - [1.0, -2.0])
    return {"weights": inputs.T @ errors / max(len(inputs), 1)}
"""
OF_ALL_RANKS = """
one_batch_of = batch_of

def batch_of(number, rank, ranks):
    return one_batch_of(number * ranks + rank)
"""
SUMS = "assert sums.tolist() == [3.0] * 3, sums"
BACK_END = "" if not is_there("torch") or entry_points_work() else "import ringlet.torch\n"
DATA_PARALLEL = f"""
import torch
{BACK_END}
torch.distributed.init_process_group("ringlet")
rank = torch.distributed.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
batches = [torch.full((1 + 2 * rank, 3), float(rank))]  # one sample of zeros, three of ones

def loss(outputs):
    return outputs.mean()
"""

# By document, in the order in which they stand there.
BLOCKS = {
    "docs/mlx.md": [
        Block(
            "from mlx.core import ones\nx, gradients = ones(3), {'w': ones(3)}\n",
            "assert total.tolist() == [2.0] * 3 and gradients['w'].tolist() == [1.0] * 3, (total, gradients)",
            ("mlx", "ringlet_mlx"),
        )
    ],
    "docs/python.md": [
        Block("", SUMS),
        Block("import numpy\nimport ringlet\nworld, x = ringlet.init(), numpy.ones(3)\n", "assert y.tolist() == [2.0] * 3, y"),
        Block(
            TRAINING,
            "assert trainer.step() == 1000 and ringlet.latest_checkpoint(trainer.world(), 'checkpoints') == 1000\n"
            "assert np.allclose(parameters['weights'], [1, -2], atol=0.1), parameters",
        ),
        Block(
            TRAINING + "world = ringlet.init(elastic=True)\n",
            "trainer.run(step, steps=100, batch=256)\n"
            "assert fsdp.step() == 100 and ringlet.latest_checkpoint(trainer.world(), 'checkpoints') == 100\n"
            "assert parameters['weights'][0] > 0.1 and parameters['weights'][1] < -0.1, parameters",
        ),
        Block(
            TRAINING + OF_ALL_RANKS + "world = ringlet.init()\n",
            "assert np.allclose(parameters['weights'], [1, -2], atol=0.1), parameters",
        ),
        Block(
            "import ringlet\nworld = ringlet.init()\n",
            "means = average({'w': jax.numpy.full(3, float(world.rank()))})['w']\nassert means.tolist() == [0.5] * 3, means",
            ("jax",),
        ),
        Block(
            "import ray\nray.init(num_cpus=8, include_dashboard=False, _node_ip_address='127.0.0.1')\nloss = 0.5\n",
            "assert losses == [0.5] * 4, losses",
            ("ray",),
            ALONE,
        ),
    ],
    "docs/torch.md": [
        Block(
            BACK_END,
            "import torch\ntotal = torch.ones(3)\ndist.all_reduce(total)\nassert total.tolist() == [2.0] * 3\ndist.destroy_process_group()",
            ("torch",),
        ),
        Block(
            DATA_PARALLEL,
            "assert model.module.weight.grad.tolist() == [[0.75] * 3], model.module.weight.grad\ntorch.distributed.destroy_process_group()",
            ("torch",),
        ),
        Block(
            DATA_PARALLEL,
            "assert model.module.weight.grad.tolist() == [[0.5] * 3], model.module.weight.grad\ntorch.distributed.destroy_process_group()",
            ("torch",),
        ),
        Block(
            DATA_PARALLEL + "model = model.module\n",
            "assert model.weight.grad.tolist() == [[0.5] * 3], model.weight.grad\ntorch.distributed.destroy_process_group()",
            ("torch",),
        ),
        Block(
            """
import itertools
import torch
import ringlet

torch.manual_seed(1)
model, loss = torch.nn.Linear(3, 1), torch.nn.MSELoss()
batches = ((inputs, inputs.sum(1, keepdim=True)) for inputs in (torch.randn(4, 3) for _ in itertools.count()))
""",
            "weights = model.weight.detach().numpy()\nassert (world.all_sum(weights) == 2 * weights).all(), weights",
            ("torch",),
        ),
    ],
    "docs/trace.md": [
        Block(
            TRAINING
            + """
import queue
world = ringlet.init(trace="trace.json")
batches = queue.Queue()
for number in range(50):
    batches.put(batch_of(number))
""",
            """
import pathlib
import time
part = pathlib.Path(f"trace.{world.rank()}.json")
for _ in range(600):
    # It is written all the time.
    counts = [part.read_text().count(f'"name":"{name}"') for name in ("step", "next batch", "forward and backward")]
    if counts == [50] * 3:
        break
    time.sleep(0.1)
else:
    raise AssertionError(counts)
""",
        )
    ],
    "python/README.md": [Block("", SUMS)],
    "python/mlx/README.md": [Block("", "assert sums.tolist() == [2.0] * 3, sums", ("mlx", "ringlet_mlx"))],
}


def blocks_in(path):
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)


def test_all_blocks_are_here():
    found = {path.relative_to(ROOT).as_posix(): len(blocks_in(path)) for path in PROSE}
    assert {document: count for document, count in found.items() if count} == {name: len(blocks) for name, blocks in BLOCKS.items()}


@pytest.mark.parametrize("document, number", [(document, number) for document, blocks in BLOCKS.items() for number in range(len(blocks))])
def test_blocks_run(tmp_path, document, number):
    block = BLOCKS[document][number]
    for module in block.needs:
        if not is_there(module):
            pytest.skip(f"{module} is not installed")
    program = tmp_path / "program.py"
    program.write_text("\n".join([block.before, blocks_in(ROOT / document)[number], block.after]))
    if block.ranks == ALONE:
        done = subprocess.run(
            [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, env=settings({})
        )
    else:
        done = launch(block.ranks, sys.executable, program, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
