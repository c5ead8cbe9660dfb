"""The manifest of an indexed job, without a cluster: what it sets lets the ranks meet."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import LIMIT_S, settings

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

MANIFEST = Path(__file__).resolve().parents[2] / "examples" / "kubernetes" / "indexed_job.yaml"
PROGRAM = """
import numpy, ringlet
with ringlet.init(strict=True) as group:
    print(f"rank {group.rank()} of {group.size()}: {group.all_sum(numpy.arange(2.0) + group.rank()).tolist()}", flush=True)
"""


@pytest.fixture
def parts():
    """The manifest's documents, by their kinds."""
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST.read_text())}


def variables_of(job):
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable for variable in container["env"]}


def test_the_names_fit(parts):
    service, job = parts["Service"], parts["Job"]["spec"]
    name, service_name = parts["Job"]["metadata"]["name"], service["metadata"]["name"]
    assert list(service["spec"]["selector"].values()) == [name] and service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True and job["completionMode"] == "Indexed"
    # A pod is called as the job with its index, and found under that name in the service.
    variables = variables_of(parts["Job"])
    host, _, port = variables["RINGLET_COORDINATOR"]["value"].partition(":")
    assert host == f"{name}-0.{service_name}" and int(port) > 0
    assert job["template"]["spec"]["subdomain"] == service_name
    ranks = int(variables["RINGLET_WORLD_SIZE"]["value"])
    assert job["completions"] == job["parallelism"] == ranks
    # One failure ends all ranks, each of which counts.
    assert job["backoffLimit"] % ranks == 0
    assert "secretKeyRef" in variables["RINGLET_TOKEN"]["valueFrom"]


def test_the_ranks_meet(parts):
    variables = variables_of(parts["Job"])
    environment = {name: each["value"] for name, each in variables.items() if name.startswith("RINGLET_") and "value" in each}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        # Names of the cluster are not known here.
        environment["RINGLET_COORDINATOR"] = f"127.0.0.1:{free.getsockname()[1]}"
    environment.update(RINGLET_TOKEN="token-of-this-test-alone", KUBERNETES_SERVICE_HOST="10.96.0.1")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=settings({**environment, "JOB_COMPLETION_INDEX": str(index)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(int(environment["RINGLET_WORLD_SIZE"]))
    ]
    try:
        said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert all(f"rank {index} of 4: [6.0, 10.0]" in text for index, text in enumerate(said)), said
    assert "ringlet: rank 0, by Kubernetes (JOB_COMPLETION_INDEX)" in said[0], said
