"""Runs torch's own tests of back ends on Ringlet, and prints a line of JSON for each, then how many passed.

    BACKEND=ringlet WORLD_SIZE=3 python torch_suite.py [--as-gloo] [--backend] [TEST...]

They are in the wheel of torch (torch/testing/_internal/distributed/distributed_test.py), and need expecttest. With --as-gloo the name is "gloo", so that
tests that are meant for it run, but Ringlet answers; with BACKEND=gloo alone it is gloo itself. With --backend Ringlet is a back end of torch's process group
instead of one itself. Ranks are forked, which saves importing torch.
"""

import collections
import functools
import json
import os
import sys
import tempfile
import time
import unittest

options = {word for word in sys.argv[1:] if word.startswith("--")}
chosen = [word for word in sys.argv[1:] if not word.startswith("--")]
settings = {"BACKEND": "ringlet", "WORLD_SIZE": "3", "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29655"}
settings.update(DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="60", TEMP_DIR=tempfile.gettempdir())
for setting, value in settings.items():
    os.environ.setdefault(setting, value)
if "--as-gloo" in options:
    os.environ["BACKEND"] = "gloo"

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import DistTestCases

import ringlet.torch

torch.set_num_threads(1)
if "--backend" in options:
    from ringlet.torch.backend import Backend

    ringlet.torch._class_to_make = lambda: Backend
if "--as-gloo" in options:
    dist.Backend._plugins["GLOO"] = dist.Backend._BackendPlugin(functools.partial(ringlet.torch.create, events="gloo"), True)
for feature in ("ddp", "subgroup"):
    DistTestCases.backend_feature[feature].add("ringlet")

from torch.testing._internal.distributed import distributed_test

if os.environ["BACKEND"] == "ringlet":
    for supported in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
        supported.append("ringlet")


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


def main():
    Suite.setUpClass()
    states = collections.Counter()
    for name in (name for name in dir(Suite) if name.startswith("test_") and (not chosen or name in chosen)):
        result = unittest.TestResult()
        start = time.time()
        try:
            Suite(name).run(result)
        except BaseException as error:
            result.errors.append((name, repr(error)))
        state = "skip" if result.skipped else "pass" if result.wasSuccessful() else "fail"
        why = result.skipped[0][1] if result.skipped else (result.failures + result.errors)[0][1] if state == "fail" else ""
        states[state] += 1
        print(json.dumps({"test": name, "state": state, "seconds": round(time.time() - start, 1), "why": why[-3000:]}), flush=True)
    print(f"{states['pass']} passed, {states['fail']} failed, {states['skip']} skipped")


if __name__ == "__main__":
    main()
