"""The examples that users copy."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import LIMIT_S, launch, run, settings, torchrun

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_numpy_training(ranks):
    done = launch(ranks, sys.executable, EXAMPLES / "numpy_training.py")
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if "the same on all ranks" in line]
    assert len(lines) == ranks
    assert all("[ 1.  -2.   0.5] 4.0" in line for line in lines), done.stdout


@pytest.mark.parametrize("ranks", [1, 2])
def test_torch_ddp(ranks):
    pytest.importorskip("torch")
    has_trained(launch(ranks, sys.executable, EXAMPLES / "torch_ddp.py", "--steps", 20), ranks)


def test_torch_ddp_by_torchrun():
    pytest.importorskip("torch")
    has_trained(torchrun("--nproc-per-node", 2, EXAMPLES / "torch_ddp.py", "--steps", 20), 2)


def test_torch_ddp_on_machines_that_are_up(tmp_path):
    """A group of one machine, which is up at the loopback."""
    pytest.importorskip("torch")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"RINGLET_TOKEN": "token-of-this-test-alone", "XDG_CONFIG_HOME": str(tmp_path)}
    place = ["--group", "home", "--interface", "lo", "--port", str(port)]
    # `up` starts the file that a link stands for, and the Python of a virtual environment is such a link.
    program = tmp_path / "train"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{EXAMPLES / "torch_ddp.py"}" "$@"\n')
    program.chmod(0o755)
    up = subprocess.Popen([sys.executable, "-m", "ringlet", "up", *place, "--no-dns-sd", "--allow", program], env=settings(environment))
    try:
        has_trained(run("ringlet", "run", *place, "-n", 2, "--", program, "--steps", 20, environment=environment), 2)
    finally:
        up.send_signal(signal.SIGTERM)
        assert up.wait(timeout=LIMIT_S) == 0


def has_trained(done, ranks):
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("parameters the same on all ranks") == ranks and "step 20: loss" in done.stdout, done.stdout


@pytest.mark.parametrize("options", [[], ["--by-speed"]])
def test_torch_diloco(options):
    pytest.importorskip("torch")
    done = launch(2, sys.executable, EXAMPLES / "torch_diloco.py", *options)
    assert done.returncode == 0, done.stdout
    losses = re.findall(r"held-out loss ([0-9.]+), parameters the same on all ranks", done.stdout)
    # What the teacher says has a variance of 0.6.
    assert len(losses) == 2 and losses[0] == losses[1] and float(losses[0]) < 0.05, done.stdout


@pytest.mark.parametrize("options", [[], ["--one-function"]])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_jax_training(ranks, options):
    pytest.importorskip("jax")
    done = launch(ranks, sys.executable, EXAMPLES / "jax_training.py", *options)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("parameters the same on all ranks") == ranks, done.stdout
    # Who guesses the mean is wrong by a ninth.
    losses = [float(loss) for loss in re.findall(r"step \d+: loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 2 and losses[1] < 0.06 < losses[0], done.stdout


@pytest.mark.parametrize("ranks", [1, 2])
def test_mlx_training(ranks):
    pytest.importorskip("mlx.core")
    from ringlet import mlx

    options = [] if mlx.native else ["--eager"]
    done = launch(ranks, sys.executable, EXAMPLES / "mlx_training.py", "--steps", 40, *options)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("parameters the same on all ranks") == ranks, done.stdout
    losses = [float(loss) for loss in re.findall(r"step \d+: loss ([0-9.]+)", done.stdout)]
    # All 256 letters are as likely at first: ln 256 is 5.5.
    assert len(losses) == 2 and losses[1] < losses[0] < 5, done.stdout
