"""Runs MLX's own tests of mx.distributed on Ringlet, unchanged, and prints a line of JSON for each, then how many passed.

    python mlx_suite.py [--ranks 2,4,8] [--eager] [--fsdp FOLDER] FOLDER [TEST...]

FOLDER is a checkout or a source distribution of MLX, of the version that is installed. What they get is ringlet.mlx.install(): `mx.distributed.init`
gives Ringlet's group, and so does every call that names none. With --eager ringlet-mlx is taken for missing. MLX had `fsdp_apply_gradients` up to
0.32.0: --fsdp names a checkout of such a version (0.31.2), whose function and its tests are then run as well.
"""

import argparse
import collections
import importlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import time
import unittest

FILES = ["ring_test_distributed", "mpi_test_distributed", "nccl_test_distributed"]
OLD_FILE = "nccl_test_distributed"
OLD = "fsdp"
# These count on a number of ranks. The last one compares the peak of FSDP, with the optimizer state of data parallelism still there, with that of data
# parallelism. MLX counts its own arrays alone: of 2 ranks they are 13 and 11 times the parameters (of 4 ranks 10.5 and 11), also where copies on one
# rank stand for the collectives.
AT_LEAST = {
    "mpi_test_distributed.test_groups": 8,
    "mpi_test_distributed.test_mixed": 8,
    "nccl_test_distributed.test_groups": 8,
    "fsdp.test_fsdp_ddp_apply_gradients": 4,
    "fsdp.test_fsdp_peak_memory": 4,
}
# What these demand is otherwise here: a ring cannot be split, and, of eager groups, a result takes the memory of its argument.
OTHERWISE = {"ring_test_distributed.test_groups": "RuntimeError not raised"}
OTHERWISE_EAGER = {f"{file}.test_donation": "all_sum_with_binary" for file in FILES}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--fsdp", type=pathlib.Path)
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    return parser.parse_args()


def launch_all(options):
    passed = True
    for ranks in options.ranks.split(","):
        words = [sys.executable, "-m", "ringlet", "launch", "-n", ranks, "--", sys.executable, __file__, "--as-rank", *sys.argv[1:]]
        print(f"{ranks} ranks", flush=True)
        passed = subprocess.run(words, stdin=subprocess.DEVNULL).returncode == 0 and passed
    return passed


def module_at(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(options):
    sys.path.insert(0, str(options.folder / "python" / "tests"))
    modules = {name: importlib.import_module(name) for name in FILES}
    if options.fsdp:
        import mlx.nn as nn

        # It is one of the package mlx.nn for its own imports.
        nn.utils.fsdp_apply_gradients = module_at(
            "mlx.nn.old_utils", options.fsdp / "python" / "mlx" / "nn" / "utils.py"
        ).fsdp_apply_gradients
        modules[OLD] = module_at(OLD, options.fsdp / "python" / "tests" / f"{OLD_FILE}.py")
    for file, module in modules.items():
        for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
            for case in suite:
                method = case.id().rpartition(".")[2]
                # The common cases are in the other files, too.
                if file != OLD or "fsdp_" in method:
                    yield f"{file}.{method}", case


def run_rank(options):
    import ringlet.mlx

    if options.eager:
        ringlet.mlx._native, ringlet.mlx.native, ringlet.mlx.reason = None, False, "--eager"
    ringlet.mlx.install()
    group = ringlet.mlx.init(strict=True)
    kind = type(group).__module__ + "." + type(group).__qualname__
    states = collections.Counter()
    otherwise = {**OTHERWISE, **(OTHERWISE_EAGER if options.eager else {})}
    for name, case in cases(options):
        if options.tests and name.partition(".")[2] not in options.tests and name not in options.tests:
            continue
        result = unittest.TestResult()
        start = time.time()
        why = ""
        if group.size() < AT_LEAST.get(name, 1):
            state, why = "skip", f"counts on {AT_LEAST[name]} ranks"
        else:
            unittest.TestSuite([case]).run(result)
            state = "pass" if result.wasSuccessful() and result.testsRun == 1 else "fail"
            if state == "fail":
                why = (result.failures + result.errors)[0][1]
            if name in otherwise:
                state, why = ("otherwise", why) if otherwise[name] in why else ("fail", why or "it passed")
        states[state] += 1
        if group.rank() == 0 or state == "fail":
            line = {"test": name, "state": state, "seconds": round(time.time() - start, 1), "why": why[-3000:]}
            print(json.dumps(line), flush=True)
    if group.rank() == 0:
        counts = ", ".join(f"{states[state]} {state}" for state in ("pass", "fail", "skip", "otherwise"))
        print(f"{group.size()} ranks, {kind}: {counts}", flush=True)
    return states["fail"] == 0 and states["pass"] > 0


def main():
    options = arguments()
    sys.exit(0 if (run_rank if options.as_rank else launch_all)(options) else 1)


if __name__ == "__main__":
    main()
