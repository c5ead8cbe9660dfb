"""How torch's process groups come to be: its stores, torchrun, several groups one after the other, other back ends beside."""

import os
import subprocess
import sys

import pytest
from ranks import LIMIT_S, entry_points_work, launch

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

IMPORT = "" if entry_points_work() else "import ringlet.torch\n"
BEGIN = f"import os, sys\nimport torch\nimport torch.distributed as dist\n{IMPORT}torch.set_num_threads(1)\n"


def write(folder, text):
    program = folder / "program.py"
    program.write_text(BEGIN + text)
    return program


def torchrun(*words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        env=environment,
    )


def test_file_store(tmp_path):
    program = write(
        tmp_path,
        f"""
for attempt in range(2):
    dist.init_process_group("ringlet", init_method="file://{tmp_path}/store" + str(attempt), rank=int(os.environ["RANK"]), world_size=3)
    total = torch.ones(3)
    dist.all_reduce(total)
    print("total", total.tolist(), flush=True)
    dist.destroy_process_group()
""",
    )
    done = launch(3, sys.executable, program)
    assert done.returncode == 0 and done.stdout.count("total [3.0, 3.0, 3.0]") == 6, done.stdout


def test_hash_store_of_one_process():
    dist.init_process_group("ringlet", store=dist.HashStore(), rank=0, world_size=1) if entry_points_work() else pytest.skip("torch < 2.14")
    try:
        total = torch.ones(3)
        dist.all_reduce(total)
        assert total.tolist() == [1, 1, 1]
    finally:
        dist.destroy_process_group()


def test_groups_follow_each_other_in_one_store(tmp_path):
    """torchrun's store outlives the groups, with all their keys."""
    program = write(
        tmp_path,
        """
for attempt in range(3):
    dist.init_process_group("ringlet")
    part = dist.new_group([0, 1])
    total = torch.ones(1)
    dist.all_reduce(total, group=part)
    print("total", total.item(), flush=True)
    dist.destroy_process_group()
""",
    )
    done = torchrun("--nproc-per-node", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", program)
    assert done.returncode == 0 and done.stdout.count("total 2.0") == 6, done.stdout


def test_torchrun_restarts_all(tmp_path):
    program = write(
        tmp_path,
        """
dist.init_process_group("ringlet")
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
    os._exit(3)
total = torch.ones(1)
dist.all_reduce(total)
print("total", total.item(), "after", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
dist.destroy_process_group()
""",
    )
    done = torchrun("--standalone", "--nproc-per-node", 2, "--max-restarts", 2, program)
    assert done.returncode == 0 and done.stdout.count("total 2.0 after 1") == 2, done.stdout


def test_beside_another_back_end(tmp_path):
    program = write(
        tmp_path,
        """
dist.init_process_group("gloo")
for _ in range(2):
    part = dist.new_group(backend="ringlet")
    total = torch.ones(1)
    dist.all_reduce(total, group=part)
    print("total", total.item(), dist.get_backend(part), flush=True)
    dist.destroy_process_group(part)
dist.barrier()
dist.destroy_process_group()
""",
    )
    done = launch(2, sys.executable, program)
    assert done.returncode == 0 and done.stdout.count("total 2.0 ringlet") == 4, done.stdout


@pytest.mark.skipif(
    not hasattr(torch._C._distributed_c10d, "Backend") or not entry_points_work(), reason="torch < 2.14 has no back ends in Python"
)
def test_one_of_several_back_ends(tmp_path):
    """Each kind of device has a back end of its own. Here the other's device is not there, and it is never called."""
    program = write(
        tmp_path,
        """
dist.init_process_group("cpu:ringlet,cuda:gloo")
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.full((3,), rank + 1.0)
dist.all_reduce(total)
whole = torch.empty(2 * size)
dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
part = torch.empty(2)
dist.reduce_scatter_tensor(part, torch.ones(2 * size))
work = dist.all_reduce(torch.ones(2), async_op=True)
future = work.get_future().wait()
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
net(torch.ones(4, 3)).sum().backward()
group = dist.new_group([1, 0])
dist.broadcast(part, 1, group=group)
dist.barrier()
print("total", total.tolist(), whole.tolist(), part.tolist(), future[0].tolist(), flush=True)
dist.destroy_process_group()
""",
    )
    done = launch(2, sys.executable, program)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("total [3.0, 3.0, 3.0] [0.0, 0.0, 1.0, 1.0] [2.0, 2.0] [2.0, 2.0]") == 2, done.stdout
