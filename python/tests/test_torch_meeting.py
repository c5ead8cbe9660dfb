"""How torch's process groups come to be: its stores, torchrun, several groups one after the other, other back ends beside."""

import sys
import threading

import pytest
from ranks import entry_points_work, launch, torchrun


torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

IMPORT = "" if entry_points_work() else "import ringlet.torch\n"
BEGIN = f"import os, sys\nimport torch\nimport torch.distributed as dist\n{IMPORT}torch.set_num_threads(1)\n"
# In one piece: torchrun does not keep its ranks' lines apart.
BEGIN += "def say(*words):\n    os.write(1, (' '.join(map(str, words)) + chr(10)).encode())\n"


def write(folder, text):
    program = folder / "program.py"
    program.write_text(BEGIN + text)
    return program


@pytest.fixture
def meeting(monkeypatch):
    from ringlet.torch import meeting

    for name in ("RINGLET_LISTEN", "RINGLET_PORTS", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    return meeting


def test_where_rank_0_listens(meeting, monkeypatch):
    assert [meeting._host_part(text) for text in ("a", "a:1", "[::1]:1", "::1", "10.0.0.1:5")] == ["a", "a", "::1", "::1", "10.0.0.1"]
    assert meeting._own_address("127.0.0.1") == "127.0.0.1"
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    # All ranks are here, whatever the machine's name stands for.
    assert meeting._own_address("203.0.113.7") == "127.0.0.1"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    # The store's host was given as the loopback, so all ranks are here in spite of that.
    assert meeting._own_address("localhost") == "127.0.0.1"
    monkeypatch.setattr(meeting, "_address_towards", lambda host: "10.1.2.3" if host == meeting._ANYWHERE else "127.0.0.1")
    assert meeting._own_address("alpha") == "10.1.2.3"
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    assert meeting._own_address("alpha") == "10.1.2.3"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("RINGLET_LISTEN", "10.9.9.9:0")
    assert meeting._own_address("alpha") == "10.9.9.9"
    monkeypatch.setenv("RINGLET_LISTEN", "0.0.0.0")
    assert meeting._own_address("alpha") == "10.1.2.3"


def test_where_the_store_is(meeting, monkeypatch):
    store = dist.PrefixStore("a", dist.PrefixStore("b", dist.HashStore()))
    assert meeting._host_of(store) == "127.0.0.1"
    monkeypatch.setenv("MASTER_ADDR", "alpha")
    assert meeting._host_of(store) == "alpha"
    tcp = dist.TCPStore("127.0.0.1", 0, 1, is_master=True)
    assert meeting._host_of(dist.PrefixStore("c", tcp)) == "127.0.0.1"


class ForgetfulStore:
    """Fails when it is asked for the first times."""

    def __init__(self, failures):
        self.keys, self.failures, self.is_answered = {}, failures, threading.Event()
        self.has_failed = threading.Event()

    def check(self, keys):
        if self.failures > 0:
            self.failures -= 1
            self.has_failed.set()
            raise RuntimeError("the store is away")
        return all(key in self.keys for key in keys)

    def get(self, key):
        return self.keys[key]

    def set(self, key, value):
        self.keys[key] = value.encode()
        self.is_answered.set()


@pytest.mark.parametrize("failures", [0, 3])
def test_a_store_that_fails_for_a_moment(meeting, failures):
    store = ForgetfulStore(failures)
    store.keys = {"ringlet/a/requests": b"1", "ringlet/a/1": b"request "}
    with meeting._MeetingServer(store, "ringlet/a", 2, "meeting", "127.0.0.1:1"):
        assert store.is_answered.wait(60)
    assert store.keys["ringlet/a/1/request"] == b"meeting 127.0.0.1:1"


def test_a_store_that_fails_is_told_where_nobody_comes(meeting):
    store = ForgetfulStore(sys.maxsize)
    with pytest.raises(TimeoutError) as caught:
        with meeting._MeetingServer(store, "ringlet/a", 2, "meeting", "127.0.0.1:1"):
            assert store.has_failed.wait(60)
            raise TimeoutError("nobody has come")
    assert "the store is away" in str(caught.value.__cause__)


def test_file_store(tmp_path):
    program = write(
        tmp_path,
        f"""
for attempt in range(2):
    dist.init_process_group("ringlet", init_method="file://{tmp_path}/store" + str(attempt), rank=int(os.environ["RANK"]), world_size=3)
    total = torch.ones(3)
    dist.all_reduce(total)
    say("total", total.tolist())
    dist.destroy_process_group()
""",
    )
    done = launch(3, sys.executable, program)
    assert done.returncode == 0 and done.stdout.count("total [3.0, 3.0, 3.0]") == 6, done.stdout


def test_a_store_that_processes_have_used_before(tmp_path):
    """After a restart torchrun's store has the keys of the processes before, and each machine counts its own restarts alone."""
    program = write(
        tmp_path,
        f"""
os.environ["TORCHELASTIC_RESTART_COUNT"] = str(int(os.environ["RANK"]) % 2)
rank = int(os.environ["RANK"])
dist.init_process_group("ringlet", store=dist.FileStore("{tmp_path}/store", -1), rank=rank, world_size=3)
total = torch.ones(1)
dist.all_reduce(total)
say("total", total.item())
dist.destroy_process_group()
""",
    )
    for _ in range(3):
        done = launch(3, sys.executable, program)
        assert done.returncode == 0 and done.stdout.count("total 3.0") == 3, done.stdout


def test_a_rank_that_is_started_anew_meets_those_who_live_on(tmp_path):
    program = write(
        tmp_path,
        f"""
import subprocess
rank = int(os.environ["RANK"])
if rank == 1 and len(sys.argv) == 1:
    for _ in range(3):
        subprocess.run([sys.executable, __file__, "child"], check=True)
    sys.exit()
store = dist.FileStore("{tmp_path}/store", -1)
for turn in range(1 if rank == 1 else 3):
    dist.init_process_group("ringlet", store=store, rank=rank, world_size=3)
    total = torch.ones(1)
    dist.all_reduce(total)
    say("total", total.item())
    dist.destroy_process_group()
""",
    )
    done = launch(3, sys.executable, program)
    assert done.returncode == 0 and done.stdout.count("total 3.0") == 9, done.stdout


def test_a_barrier_in_a_store_that_knows_one_before(tmp_path):
    program = write(
        tmp_path,
        """
from datetime import timedelta
for turn in range(2):
    dist.init_process_group("ringlet")
    part = dist.new_group([1, 0])
    for group in (dist.group.WORLD, part):
        comes = turn == 0 or dist.get_rank(group) == 0
        try:
            if comes:
                group.monitored_barrier(timedelta(seconds=60 if turn == 0 else 0.3))
                say("passed", turn)
        except RuntimeError as error:
            say("late:", error)
    dist.barrier()
    dist.destroy_process_group()
""",
    )
    done = torchrun("--nproc-per-node", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", program)
    assert done.returncode == 0 and done.stdout.count("passed 0") == 4 and "passed 1" not in done.stdout, done.stdout
    assert done.stdout.count("late: [Rank 0]: Rank 1 failed to pass") == 2, done.stdout


def test_a_timeout_of_years(tmp_path):
    program = write(
        tmp_path,
        """
from datetime import timedelta
dist.init_process_group("ringlet", timeout=timedelta(seconds=180_000_000))
part = dist.new_group([0, 1], timeout=timedelta(days=36_500))
total = torch.ones(1)
dist.all_reduce(total, group=part)
dist.barrier()
say("total", total.item())
dist.destroy_process_group()
""",
    )
    done = launch(2, sys.executable, program)
    assert done.returncode == 0 and done.stdout.count("total 2.0") == 2, done.stdout


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
    say("total", total.item())
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
say("total", total.item(), "after", os.environ["TORCHELASTIC_RESTART_COUNT"])
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
    say("total", total.item(), dist.get_backend(part))
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
from ringlet.torch import ProcessGroup, WireAverage, wire_average_hook
from ringlet.torch.backend import Backend
world = dist.group.WORLD
# What create() guesses from torch's own variables.
assert type(world._get_backend(torch.device("cpu"))) is Backend and not isinstance(world, ProcessGroup), type(world)
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
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
net.register_comm_hook(WireAverage("bf16"), wire_average_hook)
net(torch.full((4, 3), rank + 1.0)).mean().backward()
assert (net.module.weight.grad == 0.75).all(), net.module.weight.grad
group = dist.new_group([1, 0])
assert type(group._get_backend(torch.device("cpu"))) is Backend, type(group)
dist.broadcast(part, 1, group=group)
alone = dist.new_group(backend="ringlet")
assert type(alone) is ProcessGroup, type(alone)
if rank == 0:
    # What cannot be told who sent it is not taken.
    message = torch.zeros(2)
    try:
        dist.recv(message)
    except ValueError as error:
        assert "recv() has to name src in a process group of several back ends" in str(error), error
    else:
        raise AssertionError("a receive from any rank was not refused")
    dist.irecv(message).wait()
    assert message.tolist() == [1, 2], message
    assert dist.recv(message, group=alone) == 1 and message.tolist() == [3, 4], message
else:
    dist.send(torch.tensor([1.0, 2.0]), 0)
    dist.send(torch.tensor([3.0, 4.0]), 0, group=alone)
dist.barrier()
say("total", total.tolist(), whole.tolist(), part.tolist(), future[0].tolist())
dist.destroy_process_group()
""",
    )
    done = launch(2, sys.executable, program)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("total [3.0, 3.0, 3.0] [0.0, 0.0, 1.0, 1.0] [2.0, 2.0] [2.0, 2.0]") == 2, done.stdout


def test_init_by_torchrun_alone(tmp_path):
    """ringlet.init() reads torchrun's variables, without a process group of torch's."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, numpy, ringlet
with ringlet.init(strict=True) as group:
    total = group.all_sum(numpy.full(3, 10.0 + group.rank()))
    os.write(1, f"rank {group.rank()} of {group.size()}: {total.tolist()}\\n".encode())
"""
    )
    done = torchrun("--standalone", "--nproc-per-node", 2, program)
    assert done.returncode == 0, done.stdout
    assert all(f"rank {rank} of 2: [21.0, 21.0, 21.0]" in done.stdout for rank in range(2)), done.stdout
    # Rank 0 alone says by whom it was started.
    told = "ringlet: rank 0 of 2, by torchrun (RANK, WORLD_SIZE, MASTER_ADDR, and the port after MASTER_PORT); the ranks meet at 127.0.0.1:"
    assert done.stdout.count("ringlet: rank") == 1 and told in done.stdout, done.stdout
