"""The installed package on two hosts of one network, as its user has it."""

import importlib.util
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import TwoHosts, program_of_package, why_not

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
NOTEBOOK = EXAMPLES / "two_machines.ipynb"
TOKEN = "a-token-that-only-the-tests-have"
REASON = why_not()


@pytest.fixture
def hosts():
    if REASON:
        pytest.skip(f"no network of hosts: {REASON}")
    with TwoHosts() as both:
        yield both


def wait_for_line(process, text):
    """Reads what the process prints up to a line with this text."""
    read = []
    for line in process.stdout:
        read.append(line)
        if text in line:
            return
    raise AssertionError(f"'{text}' was not printed: {read}")


def test_a_training_on_two_machines_that_find_each_other(hosts, tmp_path):
    """`ringlet up` on both and `ringlet run` on one: no address is typed. The example is a program of its own, by its first line."""
    ringlet, program = program_of_package("ringlet"), tmp_path / "numpy_training"
    program.write_text(f"#!{sys.executable}\n" + (EXAMPLES / "numpy_training.py").read_text())
    program.chmod(0o755)
    agents = []
    try:
        for host in hosts:
            agents.append(
                host.start(
                    *(ringlet, "up", "--group", "home", "--name", host.name, "--allow", program), environment={"RINGLET_TOKEN": TOKEN}
                )
            )
        for agent in agents:
            wait_for_line(agent, "appeared in group home")
        said = hosts[0].call(
            *(ringlet, "run", "--group", "home", "--machines", "host1,host2", "--", program), environment={"RINGLET_TOKEN": TOKEN}
        )
        for rank in range(2):
            assert f"rank {rank} of 2: [ 1.  -2.   0.5] 4.0, the same on all ranks" in said, said
        wait_for_line(agents[1], "started")
    finally:
        for agent in agents:
            agent.terminate()
            agent.communicate(timeout=60)


def run_notebooks(starters, address, *options):
    """Runs the notebook once for each machine, and returns what each printed."""
    words = [sys.executable, Path(__file__).with_name("run_notebook.py"), *options, NOTEBOOK]
    processes = [start(*words, f"machine={machine}", f"address={address}", f"token={TOKEN}") for machine, start in enumerate(starters)]
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    return said


def check_notebooks(said):
    for machine, text in enumerate(said):
        assert f"machine {machine} of 2" in text and "the same on both machines" in text, said
    ends = [[line for line in text.splitlines() if line.startswith("weights")] for text in said]
    assert ends[0] == ends[1] and len(ends[0]) == 1, said


def test_the_notebook_on_two_machines(hosts):
    check_notebooks(run_notebooks([host.start for host in hosts], f"{hosts[0].address}:47300"))


def start_here(*command):
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("options", [[], ["--kernel"]])
def test_the_notebook_on_one_machine(options):
    for package in ("nbclient", "ipykernel") if options else ():
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is missing: scripts/wheel --with notebook")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    check_notebooks(run_notebooks([start_here] * 2, f"127.0.0.1:{port}", *options))
