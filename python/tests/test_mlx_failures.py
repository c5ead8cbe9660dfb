"""mx.distributed over Ringlet where something goes wrong, or ends early."""

import os
import subprocess
import sys

import pytest
from ranks import FOLDER, LIMIT_S, launch

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")

import ringlet.mlx as over  # noqa: E402
from ringlet.listening import address_of, listen_at  # noqa: E402

BEGIN = """
import os, signal, sys
import mlx.core as mx
import ringlet, ringlet.mlx
if "eager" in sys.argv:
    ringlet.mlx._native = None
world = ringlet.init(strict=True)
group = ringlet.mlx.group(world)
rank, size = world.rank(), world.size()
all_sum, send, recv = ringlet.mlx.all_sum, ringlet.mlx.send, ringlet.mlx.recv
"""
KINDS = ["native", "eager"] if over.native else ["eager"]
each_kind = pytest.mark.parametrize("kind", KINDS)
only_native = pytest.mark.skipif(not over.native, reason="ringlet-mlx is not installed")


def program(folder, body):
    path = folder / "program.py"
    path.write_text(BEGIN + body)
    return path


def start_all(path, size, *words):
    """Starts the ranks without `ringlet launch`, which would end them all when one fails. Returns what each has said, and the exit codes."""
    with listen_at("127.0.0.1") as listening:
        settings = {**os.environ, "RINGLET_WORLD_SIZE": str(size), "RINGLET_COORDINATOR": address_of(listening), "PYTHONUNBUFFERED": "1"}
        ranks = []
        for rank in range(size):
            own = {**settings, "RINGLET_RANK": str(rank)}
            handed = ()
            if rank == 0:
                own["RINGLET_COORDINATOR_FD"] = str(listening.fileno())
                handed = (listening.fileno(),)
            ranks.append(
                subprocess.Popen(
                    [sys.executable, str(path), *words],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env=own,
                    pass_fds=handed,
                )
            )
    said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    return said, [rank.returncode for rank in ranks]


KILLED = """
try:
    while True:
        EVALUATE
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
except Exception as error:
    print("evaluated:", isinstance(error, RuntimeError) and "PeerLost" in repr(error) and "rank 1" in str(error), flush=True)
for again in range(3):
    try:
        with ringlet.mlx.errors():
            mx.eval(all_sum(mx.ones(10), group=group))
    except ringlet.PeerLost as error:
        print("again:", error.rank, flush=True)
print("computes:", (mx.ones(3) * 2).tolist(), flush=True)
"""


@each_kind
@pytest.mark.parametrize(
    "evaluate",
    ["mx.eval(all_sum(mx.ones(100_000), group=group))", "y = all_sum(mx.ones(100_000), group=group); mx.async_eval(y); y.tolist()"],
)
def test_a_killed_rank_is_named(tmp_path, kind, evaluate):
    said, codes = start_all(program(tmp_path, KILLED.replace("EVALUATE", evaluate)), 3, kind)
    assert codes[0] == codes[2] == 0, "".join(said)
    for rank in (0, 2):
        assert "evaluated: True" in said[rank] and said[rank].count("again: 1") == 3, said[rank]
        assert "computes: [2.0, 2.0, 2.0]" in said[rank], said[rank]


@each_kind
def test_a_training_goes_on_without_a_lost_rank(tmp_path, kind):
    path = program(
        tmp_path,
        """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
done = 0
while done < 5:
    try:
        with ringlet.mlx.errors():
            total = all_sum(mx.ones(1000), group=group)
            mx.eval(total)
        assert total[3].item() == world.size()
        done += 1
    except ringlet.PeerLost:
        world = world.reform().world
        group = ringlet.mlx.group(world)
print("went on with", world.size(), flush=True)
""",
    )
    path.write_text(path.read_text().replace("init(strict=True)", "init(strict=True, elastic=True)"))
    said, codes = start_all(path, 3, kind)
    assert codes[0] == codes[2] == 0 and all("went on with 2" in said[rank] for rank in (0, 2)), said


@each_kind
def test_ranks_that_disagree_are_told(tmp_path, kind):
    path = program(
        tmp_path,
        """
try:
    with ringlet.mlx.errors():
        mx.eval(all_sum(mx.ones(10 + rank), group=group))
except ringlet.MismatchError as error:
    print("told:", "10" in str(error) and "11" in str(error), flush=True)
""",
    )
    said, codes = start_all(path, 2, kind)
    assert codes == [0, 0] and all("told: True" in text for text in said), said


@each_kind
def test_errors_of_messages_come_with_the_next_operation(tmp_path, kind):
    """A message of another dtype is an error at both ends, and the group goes on."""
    path = program(
        tmp_path,
        """
told = 0
for step in range(5):
    try:
        with ringlet.mlx.errors():
            if step == 0 and rank == 0:
                mx.eval(send(mx.ones(5), 1, group=group))
            elif step == 0:
                mx.eval(recv((5,), mx.int32, 0, group=group))
            else:
                mx.eval(all_sum(mx.ones(3), group=group))
    except ringlet.MismatchError as error:
        told += "f32" in str(error) and "i32" in str(error)
print("told:", told, flush=True)
print("sum", all_sum(mx.array(1), group=group).item(), flush=True)
""",
    )
    said, codes = start_all(path, 2, kind)
    assert codes == [0, 0] and all("told: 1" in text and "sum 2" in text for text in said), said


@each_kind
def test_what_was_sent_last_arrives(tmp_path, kind):
    """A rank may end as soon as it has sent; the receiver, which comes later, gets it all."""
    path = program(
        tmp_path,
        """
import atexit, pathlib, time
ended = pathlib.Path(sys.argv[2])
if rank == 0:
    for number in range(3):
        mx.eval(send(mx.full((1_000_000,), number), 1, group=group))
    atexit.register(ended.touch)
    sys.exit(0)
for _ in range(6000):
    if ended.exists():
        break
    time.sleep(0.01)
print("got", [recv((1_000_000,), mx.int32, 0, group=group)[-1].item() for _ in range(3)], flush=True)
""",
    )
    said, codes = start_all(path, 2, kind, str(tmp_path / "ended"))
    assert codes == [0, 0] and "got [0, 1, 2]" in said[1], said


@only_native
def test_programs_end_while_operations_run(tmp_path):
    path = program(
        tmp_path,
        """
mx.eval(all_sum(mx.ones(3), group=group))
mx.async_eval(all_sum(mx.ones(1000), group=group))
never = all_sum(mx.ones(5), group=group)
print("end", flush=True)
""",
    )
    done = launch(2, sys.executable, path)
    assert done.returncode == 0 and done.stdout.count("end") == 2, done.stdout
    assert "Traceback" not in done.stdout and "Fatal" not in done.stdout, done.stdout


@each_kind
def test_a_rank_that_ends_early_is_no_hang(tmp_path, kind):
    path = program(
        tmp_path,
        """
if rank == 1:
    sys.exit(0)
try:
    with ringlet.mlx.errors():
        mx.eval(all_sum(mx.ones(3), group=group))
except ringlet.PeerLost as error:
    print("left:", error.rank, flush=True)
""",
    )
    said, codes = start_all(path, 2, kind)
    assert codes == [0, 0] and "left: 1" in said[0], said


@each_kind
def test_ctrl_c_ends_a_split(tmp_path, kind):
    path = program(
        tmp_path,
        f"""
sys.path.insert(0, {str(FOLDER)!r})
from interrupts import seconds_until_interrupted
if rank == 1:
    recv((1,), mx.float32, 0, group=group).tolist()
    sys.exit(0)
print("interrupted", seconds_until_interrupted(lambda: group.split(0)) < 0.5, flush=True)
mx.eval(send(mx.ones(1), 1, group=group))
""",
    )
    # Without an interruption rank 0 would wait until the limit: rank 1 does not call.
    said, codes = start_all(path, 2, kind)
    assert "interrupted True" in said[0] and codes == [0, 0], said


@only_native
def test_deadlines(tmp_path):
    path = program(
        tmp_path,
        """
if rank == 1:
    signal.pause()
try:
    with ringlet.mlx.errors():
        mx.eval(all_sum(mx.ones(3), group=group))
except ringlet.Timeout as error:
    print("late:", "1" in str(error), flush=True)
os._exit(3)
""",
    )
    path.write_text(path.read_text().replace("init(strict=True)", "init(strict=True, operation_timeout=1)"))
    done = launch(2, sys.executable, path)
    assert done.returncode == 3 and "late: True" in done.stdout, done.stdout
