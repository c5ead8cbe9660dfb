"""The manifest of an indexed job, without a cluster: what it sets lets the ranks meet."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import LIMIT_S, settings

MANIFEST = Path(__file__).resolve().parents[2] / "examples" / "kubernetes" / "indexed_job.yaml"
PROGRAM = """
import numpy, ringlet
with ringlet.init(strict=True) as group:
    print(f"rank {group.rank()} of {group.size()}: {group.all_sum(numpy.arange(2.0) + group.rank()).tolist()}", flush=True)
"""


@pytest.fixture
def parts():
    """The manifest's documents, by their kinds."""
    documents = MANIFEST.read_text().split("\n---\n")
    return {value_of(document, "kind"): document for document in documents}


def value_of(document, key, after=""):
    """The first value of a key that stands behind a text. What is read here needs no more of YAML."""
    return re.search(rf'^ *{key}: *"?([^"\n]+)"?$', document[document.index(after) :], re.MULTILINE)[1]


def variables_of(job):
    return dict(re.findall(r'- name: (\w+)\n +value: "?([^"\n]+)"?\n', job))


def test_the_names_fit(parts):
    service, job = parts["Service"], parts["Job"]
    name = value_of(job, "name", "metadata:")
    assert value_of(service, "job-name", "selector:") == name and value_of(service, "clusterIP") == "None"
    assert value_of(service, "publishNotReadyAddresses") == "true"
    assert value_of(job, "completionMode") == "Indexed"
    # A pod is called as the job with its index, and found under that name in the service.
    host, _, port = variables_of(job)["RINGLET_COORDINATOR"].partition(":")
    assert host == f"{name}-0.{value_of(service, 'name', 'metadata:')}" and int(port) > 0
    assert value_of(job, "subdomain") == value_of(service, "name", "metadata:")
    ranks = variables_of(job)["RINGLET_WORLD_SIZE"]
    assert value_of(job, "completions") == value_of(job, "parallelism") == ranks
    # One failure ends all ranks, each of which counts.
    assert int(value_of(job, "backoffLimit")) % int(ranks) == 0


def test_the_ranks_meet(parts):
    job = parts["Job"]
    environment = {name: value for name, value in variables_of(job).items() if name.startswith("RINGLET_")}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        # Names of the cluster are not known here.
        environment["RINGLET_COORDINATOR"] = f"127.0.0.1:{free.getsockname()[1]}"
    secret = job[job.index("RINGLET_TOKEN") :]
    assert (value_of(secret, "name", "secretKeyRef:"), value_of(secret, "key")) == ("ringlet", "token")
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
