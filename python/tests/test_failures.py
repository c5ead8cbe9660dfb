"""Errors, lost ranks, Ctrl-C, and the end of programs."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from ranks import FOLDER, on_ranks

import ringlet


def test_classes():
    assert issubclass(ringlet.InvalidArgument, ValueError) and issubclass(ringlet.IoError, OSError)
    for kind in (ringlet.PeerLost, ringlet.IoError, ringlet.InvalidArgument):
        error = pickle.loads(pickle.dumps(kind("a text", 3)))
        assert type(error) is kind and str(error) == "a text" and error.rank == 3
        assert isinstance(error, ringlet.Error)


def test_options():
    with pytest.raises(ringlet.InvalidArgument) as caught:
        ringlet.init(rank=0, strict=True)
    assert caught.value.rank == -1
    with pytest.raises(ringlet.InvalidArgument, match="on_split"):
        ringlet.init(on_split="never")
    with pytest.raises(ringlet.InvalidArgument, match="order is 'ranks'; it may be any or rank"):
        ringlet.init(order="ranks")
    with pytest.raises(ringlet.InvalidArgument, match="parts is 'fast'; it may be even, passive or measured"):
        ringlet.init(parts="fast")
    with pytest.raises(ringlet.InvalidArgument, match="more than 0 and at most 1e6 s"):
        ringlet.init(connect_timeout=-1)
    with pytest.raises(ringlet.Timeout):
        ringlet.init(rank=1, world_size=2, coordinator="127.0.0.1:9", connect_timeout=0.3)
    assert ringlet.is_available() and not ringlet.is_available("mpi")
    with ringlet.Group() as group, pytest.raises(ringlet.InvalidArgument, match="stream"):
        group.barrier(stream=-1)


@on_ranks(2)
def test_a_socket_that_listens(group):
    """Another group of the same ranks, which meets as a program's own store says."""
    if group.rank() == 0:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            group.broadcast(np.int64(port))
            another = ringlet.init(rank=0, world_size=2, coordinator=f"127.0.0.1:{port}", listen_fd=listening.fileno())
    else:
        another = ringlet.init(rank=1, world_size=2, coordinator=f"127.0.0.1:{group.broadcast(np.int64(0))}")
    with another:
        assert another.all_sum(1.0) == 2
    with pytest.raises(ringlet.InvalidArgument, match="listen_fd"):
        ringlet.init(rank=0, world_size=2, coordinator="127.0.0.1:1", listen_fd=1)


@on_ranks(2)
def test_ranks_with_other_parts_do_not_meet(group):
    if group.rank() == 0:
        listening = socket.create_server(("127.0.0.1", 0))
        port = int(group.broadcast(np.int64(listening.getsockname()[1])))
        options = {"parts": "passive", "listen_fd": listening.fileno()}
    else:
        port = int(group.broadcast(np.int64(0)))
        options = {"parts": "measured"}
    with pytest.raises(ringlet.MismatchError, match="rank 1 is set to the parts 'measured', rank 0 to 'passive'"):
        ringlet.init(rank=group.rank(), world_size=2, coordinator=f"127.0.0.1:{port}", **options)


@on_ranks(2)
def test_mismatches_reach_all_ranks(group):
    part = group.split(0)
    with pytest.raises(ringlet.MismatchError, match="all_reduce"):
        part.all_sum(np.zeros(3 + group.rank()))
    with pytest.raises(ringlet.MismatchError):
        group.barrier()
    # The world has failed, so that the test's own last barrier is of another one.
    group.barrier = lambda: None


@on_ranks(2)
def test_timeouts(group):
    if group.rank() == 0:
        with pytest.raises(ringlet.Timeout) as caught:
            group.recv_like(np.zeros(1), 1, timeout=0.2)
        assert not isinstance(caught.value, TimeoutError)
    else:
        with pytest.raises((ringlet.Timeout, ringlet.PeerLost)):
            group.barrier(stream=1)
    group.barrier = lambda: None


@on_ranks(2)
def test_waiting_ends_before_the_operation(group):
    if group.rank() == 0:
        work = group.recv_like_async(np.zeros(3), 1)
        with pytest.raises(TimeoutError, match="still runs"):
            work.wait(0.05)
        assert not work.done()
        group.send(np.ones(1), 1, stream=1)
        assert (work.wait() == 7).all()
    else:
        group.recv_like(np.ones(1), 0, stream=1)
        group.send(np.full(3, 7.0), 0)


@on_ranks(2)
def test_reports_of_delays(group):
    """Rank 1 calls the barrier once rank 0 has been told that it is late."""
    group.barrier()
    reports, told = [], threading.Event()

    def on_delay(delay):
        assert threading.current_thread() is not threading.main_thread()
        reports.append(delay)
        if delay.over:
            raise KeyError("what the function raises is told and does no harm")
        told.set()

    with ringlet.init(warn_after=0.1, on_delay=on_delay) as world:
        if world.rank() == 0:
            work = world.barrier_async()
            assert told.wait(60)
            group.send(np.ones(1), 1)
            work.wait()
        else:
            group.recv_like(np.ones(1), 0)
            world.barrier()
        world.barrier()
    if group.rank() == 0:
        first = reports[0]
        assert first.rank == 0 and first.operation.startswith("barrier") and first.waited >= 0.1 and first.speaks and not first.over
        assert [late.rank for late in first.late] == [1] and "rank 1" in first.text
        assert first.late[0].answers and isinstance(first.late[0].doing, str)


@on_ranks(2)
def test_forked_processes_leave_the_group_alone(group):
    for ends in (sys.exit, os._exit):
        child = os.fork()
        if child == 0:
            told = ""
            try:
                group.all_sum(np.ones(1))
            except ringlet.InvalidArgument as error:
                told = str(error)
            ends(0 if str(os.getpid()) in told and str(os.getppid()) in told else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert group.all_sum(1.0) == 2


KILLED = """
import os, signal
import numpy as np
import ringlet

group = ringlet.init(strict=True)
pids = group.all_gather(np.int64(os.getpid()))
if group.rank() == 1:
    signal.pause()
# Told of the loss by rank 0, rank 2 would give up also an operation that waits for nothing of rank 1.
if group.rank() == 2:
    group.send(np.ones(1), 0)
if group.rank() == 0:
    group.recv_like(np.ones(1), 2)
    os.kill(pids[1], signal.SIGKILL)
try:
    group.barrier()
except ringlet.PeerLost as error:
    print(f"rank {group.rank()} lost rank {error.rank}", flush=True)
"""


def test_a_killed_rank_is_named(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(KILLED)
    ranks = start_all(program, 3)
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert said[0] == "rank 0 lost rank 1\n" and said[2] == "rank 2 lost rank 1\n"
    assert [rank.returncode for rank in ranks] == [0, -signal.SIGKILL, 0]


@on_ranks(2)
def test_threads_wait_at_the_same_time(group):
    works = [group.all_sum_async(np.full(3, number), stream=number) for number in range(4)]
    results = []

    def wait(work):
        results.append(work.wait()[0])

    threads = [threading.Thread(target=wait, args=(work,)) for work in works for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 0, 2, 2, 4, 4, 6, 6]


INTERRUPTED = f"""
import sys
import numpy as np
import ringlet

sys.path.insert(0, {str(FOLDER)!r})
from interrupts import seconds_until_interrupted

group = ringlet.init(strict=True)
if group.rank() == 1:
    group.recv_like(np.zeros(1), 0, stream=1)
    sys.exit()
values = np.zeros(1)
print("interrupted", seconds_until_interrupted(lambda: WAIT) < 0.5, flush=True)
group.send(values, 1, stream=1)
"""


@pytest.mark.parametrize(
    "wait", ["group.recv_like(values, 1)", "group.recv_like_async(values, 1).wait()", "group.barrier()", "group.split(0)"]
)
def test_ctrl_c_interrupts_waiting(tmp_path, wait):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED.replace("WAIT", wait))
    ranks = start_all(program, 2)
    # Without an interruption rank 0 would wait until this limit: rank 1 does not call.
    assert ranks[0].communicate(timeout=120)[0] == "interrupted True\n"
    assert ranks[1].communicate(timeout=120)[0] == ""
    assert [rank.returncode for rank in ranks] == [0, 0]


@pytest.mark.parametrize("waits_for", ["other ranks", "a token"])
def test_ctrl_c_interrupts_init(tmp_path, waits_for):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    environment = dict(os.environ)
    if waits_for == "a token":
        os.mkfifo(tmp_path / "token")
        environment["RINGLET_TOKEN_FILE"] = str(tmp_path / "token")
    program = f"""
import os, signal, threading, ringlet
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
ringlet.init(rank=0, world_size=2, coordinator='127.0.0.1:{port}', connect_timeout=600)
"""
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, timeout=120, env=environment)
    assert "KeyboardInterrupt" in done.stderr and "InvalidArgument" not in done.stderr and done.returncode != 0


def start_all(program, size, *arguments):
    """Starts the ranks without `ringlet launch`, which would end them all when one fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {**os.environ, "RINGLET_WORLD_SIZE": str(size), "RINGLET_COORDINATOR": coordinator}
    return [
        subprocess.Popen(
            [sys.executable, str(program), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env={**settings, "RINGLET_RANK": str(rank)},
        )
        for rank in range(size)
    ]
