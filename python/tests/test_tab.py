"""A training of Python and a browser's tab, which is Node here: wasm/tests/training has it with Chromium."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python" / "train_text.py"
TAB = ROOT / "tests" / "wasm" / "training_tab.mjs"
MODULE = ROOT / "build" / "wasm" / "bin" / "train_text.mjs"
NATIVE = ROOT / "build" / "release" / "bin" / "train_text"
SETTINGS = "--steps 30 --batch 10 --check-every 7 --layers 1 --width 32 --heads 2 --context 32".split()


def node():
    """Node, as scripts/node-path finds it."""
    path = subprocess.run([ROOT / "scripts" / "node-path"], capture_output=True, text=True).stdout.strip()
    return shutil.which("node", path=path or None)


def text_of(folder):
    file = folder / "text.txt"
    lines = (f"rank {line % 7} sends {line % 5} chunks to rank {(line + 1) % 7}, then waits.\n" for line in range(2000))
    file.write_text("".join(lines))
    return file


def losses_in(output):
    return [float(line.split()[-1]) for line in output.splitlines() if line.startswith("step ")]


@pytest.mark.parametrize("ranks", [1, 2])
def test_python_and_a_tab_train_one_model(tmp_path, ranks):
    program = node()
    for needed, what in ((program, "Node"), (MODULE, MODULE)):
        if needed is None or not Path(needed).exists():
            pytest.skip(f"{what} is missing")
    text, weights = text_of(tmp_path), tmp_path / "weights.npz"
    script = f"""
        import {{ token }} from {json.dumps(str(TAB.with_name("natives.mjs")))};
        import {{ trainInTab }} from {json.dumps(str(TAB))};
        const seen = await trainInTab({json.dumps(str(MODULE))}, Number(process.argv[1]), 3);
        console.log(JSON.stringify(seen));
    """
    token = subprocess.run(
        [
            program,
            "--input-type=module",
            "-e",
            f"import {{ token }} from {json.dumps(str(TAB.with_name('natives.mjs')))}; console.log(token)",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        settings = {
            **os.environ,
            "RINGLET_WORLD_SIZE": str(ranks + 1),
            "RINGLET_GUESTS": "1",
            "RINGLET_COORDINATOR": f"127.0.0.1:{port}",
            "RINGLET_TOKEN": token,
            "OPENBLAS_NUM_THREADS": "1",
        }
        natives = [
            subprocess.Popen(
                [sys.executable, EXAMPLE, *SETTINGS, *(["--save", weights] if rank == 0 else []), text],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=[listening.fileno()],
                env={**settings, "RINGLET_RANK": str(rank), **({"RINGLET_COORDINATOR_FD": str(listening.fileno())} if rank == 0 else {})},
            )
            for rank in range(ranks)
        ]
    tab = subprocess.run(
        [program, "--input-type=module", "-e", script, str(port)], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    if tab.returncode != 0:
        # They may still wait for the tab.
        for native in natives:
            native.terminate()
    said = [native.communicate(timeout=240)[0] for native in natives]
    assert tab.returncode == 0 and [native.returncode for native in natives] == [0] * ranks, (tab.stderr, said)

    seen, report = json.loads(tab.stdout.splitlines()[-1]), json.loads(said[0].splitlines()[-1])
    assert seen["checked"]["30"] == report["parameter_hash"] and list(seen["checked"]) == ["7", "14", "21", "28", "30"]
    assert seen["validationLoss"] == report["val_loss_last"] < 0.8 * report["val_loss_first"]
    assert len(seen["losses"]) == 30 and losses_in(said[0]) == [round(seen["losses"][19], 4), round(seen["losses"][29], 4)]
    with np.load(weights) as saved:
        assert saved["blocks.0.attention.qkv.weight"].shape == (32, 96) and sum(array.size for array in saved.values()) == 30432
    if not NATIVE.exists():
        return
    # The model, the data and the steps are those of the program in C++: the losses differ by the rounding of its sums.
    log = tmp_path / "losses"
    subprocess.run(
        [NATIVE, *SETTINGS, "--data", text, "--log-losses", log],
        capture_output=True,
        check=True,
        timeout=240,
        env={name: value for name, value in os.environ.items() if not name.startswith("RINGLET_")},
    )
    np.testing.assert_allclose(seen["losses"], [float(line.split()[1]) for line in log.read_text().splitlines()], rtol=1e-4)
