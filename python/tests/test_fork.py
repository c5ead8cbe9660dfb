"""Forked processes, which inherit operations that run and calls that others wait in."""

import sys

from ranks import launch, run_program

FORKED_WITHIN_A_CALL = """
import os, sys, threading, time
import ringlet

group = ringlet.Group()
begun, ended = threading.Event(), threading.Event()

def function(error):
    begun.set()
    ended.wait()

group.barrier_async().on_done(function)
begun.wait()
"""

FORKED_BY_A_CALL = """
import os, sys, threading, time
import ringlet

group = ringlet.Group()
ended = threading.Event()

def function(error):
    child = os.fork()
    if child == 0:
        # It inherits this call, too, and ends by another.
        ringlet.Group().all_sum(1.0)
        ringlet._at_exit()
        os._exit(3)
    wait_for(child, 3)
    ended.set()
"""

WAITING = """
import warnings

# That this process has threads, which is what is tested.
warnings.simplefilter("ignore", DeprecationWarning)

def wait_for(child, code=0):
    for _ in range(6000):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            assert os.waitstatus_to_exitcode(status) == code, status
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    print("the child has not ended after a minute", flush=True)
    os._exit(1)
"""

FORKED_CHILD = """
child = os.fork()
if child == 0:
    called = threading.Event()
    work = ringlet.Group().barrier_async()
    work.on_done(lambda error: called.set())
    assert called.wait(60)
    sys.exit(0)
"""


def test_forked_while_a_function_is_called():
    """The functions of the child's own works are called, and it does not wait for the parent's."""
    run_program(WAITING + FORKED_WITHIN_A_CALL + FORKED_CHILD + "\ntry:\n    wait_for(child)\nfinally:\n    ended.set()\n")


def test_forked_by_a_function_that_is_called():
    run_program(WAITING + FORKED_BY_A_CALL + "group.barrier_async().on_done(function)\nassert ended.wait(60)\n")


FORKED_WHILE_ANOTHER_WAITS = """
import os, sys, threading, time
import numpy as np
import ringlet

group = ringlet.init(strict=True)
if group.rank() == 0:
    work = group.recv_like_async(np.zeros(3), 1)
    thread = threading.Thread(target=work.wait)
    thread.start()
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        assert not work.done()
        for call in (work.wait, lambda: work.wait(0.1), lambda: work.on_done(print)):
            try:
                call()
            except ringlet.InvalidArgument as error:
                assert "was forked" in str(error), error
            else:
                sys.exit("an inherited work may not be waited for")
        sys.exit(0)
    wait_for(child)
    group.send(np.ones(1), 1, stream=1)
    thread.join()
    assert (work.wait() == 1).all()
else:
    group.recv_like(np.ones(1), 0, stream=1)
    group.send(np.ones(3), 0)
"""


def test_forked_while_another_thread_waits():
    done = launch(2, sys.executable, "-c", WAITING + FORKED_WHILE_ANOTHER_WAITS)
    assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout


FORKED_WHILE_OTHERS_CALL = """
import os, resource, sys, threading, time
import numpy as np
import ringlet

group = ringlet.Group()

def loop():
    try:
        while True:
            group.all_sum(np.ones(10))
    except ringlet.Error:
        pass

for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.2)
for _ in range(10):
    child = os.fork()
    if child == 0:
        sleeps = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        ringlet._at_exit()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - sleeps, flush=True)
        os._exit(0)
    wait_for(child)
"""


def test_forked_while_others_call():
    """The child waits for none of the threads that it does not have, which would be a thousand short sleeps."""
    sleeps = [int(line) for line in run_program(WAITING + FORKED_WHILE_OTHERS_CALL).splitlines()]
    assert len(sleeps) == 10 and max(sleeps) < 500, sleeps
