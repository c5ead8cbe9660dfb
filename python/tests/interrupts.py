"""Ctrl-C in the programs of tests."""

import os
import signal
import threading
import time


def seconds_until_interrupted(wait):
    """How long after Ctrl-C a call that waits, for what never comes, has ended. The best of five where the machine is busy."""
    # A shell that runs this in the background has the signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    quickest, sent = float("inf"), 0.0

    def interrupt():
        nonlocal sent
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    for _ in range(5):
        try:
            # By then this thread waits.
            threading.Timer(0.3, interrupt).start()
            wait()
        except KeyboardInterrupt:
            quickest = min(quickest, time.monotonic() - sent)
        if quickest < 0.5:
            break
    return quickest
