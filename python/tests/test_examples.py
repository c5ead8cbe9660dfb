"""The examples that users copy."""

import re
import sys
from pathlib import Path

import pytest
from ranks import launch

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
    done = launch(ranks, sys.executable, EXAMPLES / "torch_ddp.py", "--steps", 20)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("parameters the same on all ranks") == ranks and "step 20: loss" in done.stdout, done.stdout


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
