"""Runs torch's own tests of back ends on Ringlet, and prints a line of JSON for each, then how many passed.

    BACKEND=ringlet WORLD_SIZE=3 python torch_suite.py [--as-gloo] [--backend] [TEST...]

They are in the wheel of torch (torch/testing/_internal/distributed/distributed_test.py), and need expecttest. With --as-gloo the name is "gloo", so that
tests that are meant for it run, but Ringlet answers; with BACKEND=gloo alone it is gloo itself. With --backend Ringlet is a back end of torch's process group
instead of one itself. Ranks are forked, which saves importing torch.

The exit code is 0 if none failed, but for what is known to be otherwise, and at least one passed: of all tests by at least three ranks as many as in torch
2.15.
"""

import argparse
import collections
import functools
import json
import os
import sys
import tempfile
import time
import unittest

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--as-gloo", action="store_true")
parser.add_argument("--backend", action="store_true")
parser.add_argument("tests", nargs="*", metavar="TEST")
options = parser.parse_args()
# By the name of the back end: how many pass at least, but for those that are otherwise.
AT_LEAST = {"ringlet": 66, "gloo": 90}
# What is otherwise: Ringlet gives its own name; of a back end in Python torch sees, by C++, neither the works' ends nor whom they received from.
OTHERWISE_AS_GLOO = {"test_ddp_logging_data_cpu": "'ringlet' != 'gloo'"}
OTHERWISE_BACKEND = {
    "test_ddp_logging_data_cpu": "'custom' != 'ringlet'",
    **{f"test_{name}": "is_completed()" for name in ("irecv", "isend", "isend_autograd_profiler", "isend_torch_profiler")},
    **{f"test_send_recv_any_source{end}": "sourceRank()" for end in ("", "_autograd_profiler", "_torch_profiler")},
}

settings = {"BACKEND": "ringlet", "WORLD_SIZE": "3", "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29655"}
settings.update(DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="60", TEMP_DIR=tempfile.gettempdir())
for setting, value in settings.items():
    os.environ.setdefault(setting, value)
if options.as_gloo:
    os.environ["BACKEND"] = "gloo"

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import DistTestCases

import ringlet.torch

torch.set_num_threads(1)
if options.backend:
    from ringlet.torch.backend import Backend

    ringlet.torch._class_to_make = lambda: Backend
if options.as_gloo:
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
    otherwise = OTHERWISE_BACKEND if options.backend else OTHERWISE_AS_GLOO if options.as_gloo else {}
    for name in (name for name in dir(Suite) if name.startswith("test_") and (not options.tests or name in options.tests)):
        result = unittest.TestResult()
        start = time.time()
        try:
            Suite(name).run(result)
        except BaseException as error:
            result.errors.append((name, repr(error)))
        state = "skip" if result.skipped else "pass" if result.wasSuccessful() else "fail"
        why = result.skipped[0][1] if result.skipped else (result.failures + result.errors)[0][1] if state == "fail" else ""
        if name in otherwise and state != "skip":
            state, why = ("otherwise", why) if otherwise[name] in why else ("fail", why or "it passed")
        states[state] += 1
        print(json.dumps({"test": name, "state": state, "seconds": round(time.time() - start, 1), "why": why[-3000:]}), flush=True)
    print(f"{states['pass']} passed, {states['fail']} failed, {states['skip']} skipped, {states['otherwise']} otherwise")
    of_all = not options.tests and int(os.environ["WORLD_SIZE"]) >= 3
    least = AT_LEAST.get(os.environ["BACKEND"], 1) - len(otherwise) if of_all else 1
    if states["pass"] < least:
        print(f"at least {least} should pass")
    return states["fail"] == 0 and states["pass"] >= least


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
