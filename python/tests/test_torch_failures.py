"""torch over Ringlet where something goes wrong, or ends early."""

import os
import subprocess
import sys
import time

import pytest
from ranks import FOLDER, LIMIT_S, entry_points_work, launch, on_torch_ranks

import ringlet

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

IMPORT = "" if entry_points_work() else "import ringlet.torch\n"
BEGIN = f"""
import datetime, os, signal, sys
import torch
import torch.distributed as dist
import ringlet
{IMPORT}
torch.set_num_threads(1)
dist.init_process_group("ringlet")
rank, size = dist.get_rank(), dist.get_world_size()
"""
NET = """
from torch.nn.parallel import DistributedDataParallel
net = DistributedDataParallel(torch.nn.Linear(64, 64))
def step():
    net.zero_grad()
    net(torch.ones(8, 64)).sum().backward()
"""


def program(folder, *parts):
    path = folder / "program.py"
    path.write_text("".join([BEGIN, *parts]))
    return path


def start_all(path, size):
    """Starts the ranks without `ringlet launch`, which would end them all when one fails."""
    store = path.parent / "store"
    text = path.read_text().replace(
        'init_process_group("ringlet")',
        f'init_process_group("ringlet", init_method="file://{store}", rank=int(os.environ["RANK"]), world_size={size})',
    )
    path.write_text(text)
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**settings, "RANK": str(rank)}
        )
        for rank in range(size)
    ]


def test_a_killed_rank_is_named(tmp_path):
    path = program(
        tmp_path,
        NET,
        """
try:
    while True:
        step()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
except RuntimeError as error:
    print("lost:", "PeerLost" in str(error) and "rank 1" in str(error), flush=True)
try:
    dist.all_reduce(torch.ones(1))
except ringlet.PeerLost as error:
    print("rank", error.rank, flush=True)
os._exit(0)
""",
    )
    ranks = start_all(path, 3)
    said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    for survivor in (0, 2):
        assert "lost: True" in said[survivor] and "rank 1" in said[survivor].splitlines()[-1], said[survivor]


def test_loaders_fork(tmp_path):
    path = program(
        tmp_path,
        NET,
        """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(24.0).reshape(24, 1).expand(24, 64).contiguous())
for epoch in range(2):
    for batch, in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork"):
        net.zero_grad()
        net(batch).sum().backward()
total = torch.ones(1)
dist.all_reduce(total)
print("total", total.item(), flush=True)
dist.destroy_process_group()
""",
    )
    done = launch(2, sys.executable, path)
    assert done.returncode == 0 and done.stdout.count("total 2.0") == 2, done.stdout


@pytest.mark.parametrize("wait", ["dist.recv(values, 1)", "dist.irecv(values, 1).wait()", "dist.barrier(group)", "dist.all_reduce(values)"])
def test_ctrl_c_interrupts_waiting(tmp_path, wait):
    path = program(
        tmp_path,
        """
group = dist.new_group()
values = torch.zeros(1)
if rank == 1:
    dist.recv(values, 0, tag=5)
    os._exit(0)
""",
        f"""
sys.path.insert(0, {str(FOLDER)!r})
from interrupts import seconds_until_interrupted
print("interrupted", seconds_until_interrupted(lambda: {wait}) < 0.5, flush=True)
dist.send(values, 1, tag=5)
os._exit(0)
""",
    )
    ranks = start_all(path, 2)
    # Without an interruption rank 0 would wait until this limit: rank 1 does not call.
    said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    assert "interrupted True" in said[0] and [rank.returncode for rank in ranks] == [0, 0], said


def test_programs_end_without_leaving(tmp_path):
    path = program(
        tmp_path,
        NET,
        """
step()
dist.all_reduce(torch.ones(1000), async_op=True)
dist.all_gather([torch.empty(3) for _ in range(size)], torch.ones(3), async_op=True)
print("end", flush=True)
""",
    )
    done = launch(2, sys.executable, path)
    assert done.returncode == 0 and done.stdout.count("end") == 2, done.stdout
    assert "Traceback" not in done.stdout and "Fatal" not in done.stdout, done.stdout


def test_dropped_works_do_not_write_into_freed_memory(tmp_path):
    path = program(
        tmp_path,
        """
for _ in range(30):
    for elements in (100, 5000):
        dist.all_reduce(torch.ones(elements), async_op=True)
        dist.all_gather([torch.empty(elements) for _ in range(size)], torch.ones(elements), async_op=True)
        dist.reduce_scatter_tensor(torch.empty(elements), torch.ones(elements * size), async_op=True)
    others = [torch.zeros(elements) for elements in (100, 5000) for _ in range(5)]
    dist.barrier()
    assert all((other == 0).all() for other in others)
print("end", flush=True)
dist.destroy_process_group()
""",
    )
    done = launch(2, sys.executable, path, environment={"MALLOC_PERTURB_": "165"})
    assert done.returncode == 0 and done.stdout.count("end") == 2, done.stdout


def test_one_limit_for_all_operations_of_a_work():
    import datetime

    from ringlet.torch.work import Work

    class Operation:
        def __init__(self, seconds):
            self.left = seconds

        def wait(self, timeout):
            time.sleep(min(timeout, self.left))
            return timeout >= self.left

    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="Timed out after 0.5 s"):
        Work([Operation(0.4), Operation(60)], []).wait(datetime.timedelta(seconds=0.5))
    assert time.monotonic() - begin < 0.8


def test_deadlines(tmp_path):
    path = program(
        tmp_path,
        """
slow = dist.new_group(timeout=datetime.timedelta(milliseconds=200))
try:
    if rank == 0:
        dist.all_reduce(torch.ones(1), group=slow)
    else:
        dist.recv(torch.ones(1), 0)
except ringlet.Error as error:
    print("ended:", type(error).__name__, "Timed out" in str(error), flush=True)
os._exit(0)
""",
    )
    ranks = start_all(path, 2)
    said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    assert "ended: Timeout True" in said[0] and "ended:" in said[1], said


def test_abort(tmp_path):
    path = program(
        tmp_path,
        """
work = dist.irecv(torch.ones(1), 1 - rank)
dist.group.WORLD.abort()
try:
    work.wait()
except ringlet.Error as error:
    print("ended:", type(error).__name__, flush=True)
try:
    dist.all_reduce(torch.ones(1))
except ringlet.Error as error:
    print("ended:", type(error).__name__, flush=True)
os._exit(0)
""",
    )
    done = launch(2, sys.executable, path)
    assert done.stdout.count("ended:") == 4, done.stdout


def test_a_work_that_has_failed_has_a_future_that_has(tmp_path):
    path = program(
        tmp_path,
        """
works = [dist.irecv(torch.ones(1), 1 - rank) for _ in range(200)]
futures = [work.get_future() for work in works]
dist.group.WORLD.abort()
raised = done = 0
for work, future in zip(works, futures):
    try:
        work.wait()
    except ringlet.Error:
        raised += 1
        done += future.done()
print("raised", raised, "done", done, flush=True)
os._exit(0)
""",
    )
    done = launch(2, sys.executable, path)
    assert done.stdout.count("raised 200 done 200") == 2, done.stdout


@on_torch_ranks(2, 3)
def test_lists_of_other_lengths_are_refused():
    """Before anything is sent: the call's next attempt is the other ranks' first."""
    rank, size = dist.get_rank(), dist.get_world_size()

    def calls(count):
        mine, listed, whole = torch.ones(3), [torch.ones(3) for _ in range(count)], [torch.ones(3) for _ in range(size)]
        root = 0 if count else None  # torch itself refuses a root's empty list
        yield "input", lambda: dist.reduce_scatter(mine, listed)
        yield "output", lambda: dist.all_gather(listed, mine)
        yield "output", lambda: dist.all_to_all(listed, whole)
        yield "input", lambda: dist.all_to_all(whole, listed)
        if root is not None:
            yield "output", lambda: dist.gather(mine, listed if rank == root else None, root)
            yield "input", lambda: dist.scatter(mine, listed if rank == root else None, root)

    for count in (0, size - 1, size + 1):
        for (what, wrong), (_, right) in zip(calls(count), calls(size)):
            if rank == 0:
                with pytest.raises(ringlet.InvalidArgument, match=f"^{count} {what} tensors for {size} ranks; there is one for each"):
                    wrong()
            right()
    if rank == 0:
        with pytest.raises(ringlet.InvalidArgument, match="the output has 3 elements; input 0, which is its own, has 4"):
            dist.reduce_scatter(torch.ones(3), [torch.ones(4) for _ in range(size)])
    dist.barrier()
