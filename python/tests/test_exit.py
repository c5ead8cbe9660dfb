"""How programs end: with groups that are open, with threads that call, and with functions that are called."""

import sys

import pytest
from ranks import launch, run_program


EXITS = """
import numpy as np
import ringlet

group = ringlet.init(strict=True)
part = group.split(group.rank() % 2)
group.all_sum(np.zeros(3))
work = group.all_sum_async(np.zeros(3))
group.all_sum_async(np.zeros(3), stream=1).on_done(lambda error: None)
group.recv_like_async(np.zeros(3), 1 - group.rank(), stream=3).on_done(lambda error: None)
if group.rank() == 1:
    group.send_async(np.ones(100000), 0, stream=2)
if group.rank() == 0:
    # By then rank 1 may have ended.
    assert (group.recv_like(np.ones(100000), 1, stream=2) == 1).all()
"""


def test_programs_end_without_closing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(EXITS)
    for _ in range(3):
        done = launch(2, sys.executable, program)
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout and "nanobind" not in done.stdout


CLOSED_BY_ANOTHER_THREAD = """
import threading, time
import numpy as np
import ringlet

for call in ["group.all_sum(np.ones(10))", "group.barrier()", "group.all_gather(np.ones(3))"]:
    for pause in range(5):
        group = ringlet.Group()
        errors = []

        def loop():
            try:
                while True:
                    eval(call)
            except ringlet.Error as error:
                errors.append(error)

        thread = threading.Thread(target=loop)
        thread.start()
        time.sleep(0.004 * pause)
        group.close()
        thread.join()
        assert "closed" in str(errors[0]) or isinstance(errors[0], ringlet.Cancelled), errors
        assert repr(group) == "<ringlet.Group: closed>"
"""


def test_a_group_is_closed_while_another_thread_calls_it():
    run_program(CLOSED_BY_ANOTHER_THREAD)


ENDS_WITH_A_THREAD = """
import sys, threading, time
import numpy as np
import ringlet

group = ringlet.Group()
x = np.ones(300_000)

def loop():
    try:
        while True:
            eval(sys.argv[1])
    except ringlet.Error:
        pass

threading.Thread(target=loop, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.parametrize("call", ["group.all_sum(np.ones(10))", "ringlet.average_gradients({'a': x}, group)"])
def test_programs_end_while_a_daemon_thread_calls(call):
    for _ in range(4):
        run_program(ENDS_WITH_A_THREAD, call)


ENDS_WITH_A_CALLBACK = """
import sys, threading
import numpy as np
import ringlet

group = ringlet.Group()
called = threading.Event()
call, calls = sys.argv[1:]

def function(*_):
    if threading.current_thread() is not threading.main_thread():
        called.set()
        while calls == "one":
            pass
    return 1.0

class Own:
    def apply_gradients(self, gradients, parameters):
        function()

tree = {"w": np.ones(3)}
updater, optimizer = ringlet.FsdpUpdater(group), ringlet.SGD(function)

def loop():
    try:
        while True:
            eval(call)
    except ringlet.Error:
        pass

threading.Thread(target=loop, daemon=True).start()
called.wait()
"""


@pytest.mark.parametrize("calls", ["many", "one"])
@pytest.mark.parametrize(
    "call",
    [
        "updater.apply_gradients(tree, tree, optimizer)",
        "updater.apply_gradients(tree, tree, Own())",
        "ringlet.OuterTrainer(group, tree, inner_steps=1).run(function, steps=10**9)",
    ],
)
def test_programs_end_while_the_library_calls_a_function(call, calls):
    """Many times, or once a function that never ends: on a thread of the library's, or on one that does not keep the program alive."""
    for _ in range(4 if calls == "many" else 1):
        run_program(ENDS_WITH_A_CALLBACK, call, calls)


FORKED_WITH_A_GROUP = """
import os, sys
import numpy as np
import ringlet

group = ringlet.Group()
child = os.fork()
if child == 0:
    with_child = ringlet.Group()
    assert with_child.all_sum(1.0) == 1
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert group.all_sum(1.0) == 1
"""


def test_a_forked_process_ends_with_a_group_of_its_own():
    run_program(FORKED_WITH_A_GROUP)


DROPPED = """
import os, signal, sys, threading, time
import numpy as np
import ringlet

group = ringlet.init(strict=True, elastic=sys.argv[1] == "elastic", heartbeat_timeout=2)
other = int(group.all_gather(np.int64(os.getpid()))[1 - group.rank()])
parameters = {"w": np.ones(3)}
if sys.argv[1] == "group":
    last = group
elif sys.argv[1] == "elastic":
    last = ringlet.ElasticTrainer(group, ringlet.Checkpoint().add("model", parameters))
else:
    last = ringlet.OuterTrainer(group, parameters, inner_steps=1)
group.barrier()
if group.rank() == 1:
    # Until it is told to go on, and then for no longer.
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
del group
while open(f"/proc/{other}/stat").read().rpartition(")")[2].split()[0] != "T":
    time.sleep(0.01)
ticks, drops = 0, threading.Event()

def tick():
    global ticks
    drops.wait()
    while True:
        time.sleep(0.01)
        ticks += 1

threading.Thread(target=tick, daemon=True).start()
drops.set()
before = ticks
# It waits until the other rank, which is still, is taken for lost.
del last
passed = ticks - before
os.kill(other, signal.SIGCONT)
print(f"{passed} ticks", flush=True)
os._exit(passed < 10)
"""


@pytest.mark.parametrize("last", ["group", "elastic", "outer"])
def test_other_threads_run_while_the_last_of_a_group_is_dropped(last):
    done = launch(2, sys.executable, "-c", DROPPED, last)
    assert done.returncode == 0, done.stdout
