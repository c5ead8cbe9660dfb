"""Ctrl-C in calls that call functions of the program's own, and in close()."""

import pytest
from test_failures import start_all

PROGRAM = """
import os, signal, sys, threading
import numpy as np
import ringlet

group = ringlet.init(strict=True, elastic=ELASTIC, heartbeat_timeout=600, operation_timeout=600)

def take_no_part():
    if group.rank() == 1:
        try:
            group.recv_like(np.zeros(1), 0, stream=1)
        except ringlet.Cancelled as error:
            print("told" if "rank 0 was interrupted" in str(error) else error, flush=True)
        os._exit(0)

def begun():
    # Soon this thread waits.
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

class Own:
    def apply_gradients(self, gradients, parameters):
        print("not so")

tree = {"w": np.ones((4, 3), np.float32)}
CALLS

# A shell that runs this in the background has the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

FSDP = """
updater = ringlet.FsdpUpdater(group)
def run():
    take_no_part()
    begun()
    updater.apply_gradients(tree, tree, Own())
"""

TRAINER = """
trainer = ringlet.ElasticTrainer(group, ringlet.Checkpoint().add("m", tree))
def run():
    take_no_part()
    begun()
    trainer.run(print, steps=2, batch=4)
"""

STEP = """
trainer = ringlet.ElasticTrainer(group, ringlet.Checkpoint().add("m", tree))
def step(attempt):
    take_no_part()
    begun()
    try:
        attempt.average(tree)
    except ringlet.Cancelled:
        print("not so")
def run():
    trainer.run(step, steps=2, batch=4)
"""

COMMIT = """
trainer = ringlet.ElasticTrainer(group, ringlet.Checkpoint().add("m", tree))
def step(attempt):
    attempt.average(tree)
    take_no_part()
    begun()
    attempt.commit(lambda: None)
def run():
    trainer.run(step, steps=2, batch=4)
"""

OUTER = """
trainer = ringlet.OuterTrainer(group, tree, inner_steps=1)
def inner(step):
    take_no_part()
    begun()
    return 1
def run():
    trainer.run(inner, steps=4)
"""


@pytest.mark.parametrize(
    "calls, elastic",
    [(FSDP, False), (TRAINER, True), (STEP, True), (COMMIT, True), (OUTER, True)],
    ids=["updater", "run", "average", "commit", "outer"],
)
def test_ctrl_c_ends_the_world(tmp_path, calls, elastic):
    """Without an interruption rank 0 would wait for ten minutes: rank 1 does not take part."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("CALLS", calls).replace("ELASTIC", str(elastic)))
    assert said_by(program) == ["interrupted\n", "told\n"]


CLOSE = """
import os, signal, sys, threading, time
import numpy as np
import ringlet

signal.signal(signal.SIGINT, signal.default_int_handler)
group = ringlet.init(strict=True, heartbeat_timeout=60)
pids = group.all_gather(np.int64(os.getpid()))
if group.rank() == 1:
    try:
        group.recv_like(np.zeros(1), 0)
    except ringlet.Error:
        sys.exit()
os.kill(int(pids[1]), signal.SIGSTOP)
begin = time.monotonic()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    group.close()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 30, flush=True)
finally:
    os.kill(int(pids[1]), signal.SIGCONT)
"""


def test_ctrl_c_interrupts_close(tmp_path):
    """Rank 1 does not answer, and is lost after a minute."""
    program = tmp_path / "program.py"
    program.write_text(CLOSE)
    assert said_by(program) == ["interrupted True\n", ""]


WAITING = """
import os, signal, threading
import numpy as np
import ringlet

signal.signal(signal.SIGINT, signal.default_int_handler)
group = ringlet.init(strict=True, elastic=True)
state = ringlet.Checkpoint().add("m", {"w": np.ones(3, np.float32)})
trainer = ringlet.ElasticTrainer(group, state, min_ranks=2, min_wait=600)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    trainer.run(print, steps=2, batch=4)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_wait_for_enough_ranks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WAITING)
    assert said_by(program, 1) == ["interrupted\n"]


def said_by(program, size=2):
    ranks = start_all(program, size)
    try:
        said = [rank.communicate(timeout=120)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size, said
    return said
