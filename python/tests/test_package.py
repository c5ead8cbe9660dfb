"""What is in the package beside the calls."""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ringlet
from ringlet import _ringlet

FOLDER = Path(ringlet.__file__).parent


def test_the_program_is_inside():
    said = subprocess.run([sys.executable, "-m", "ringlet", "--version"], capture_output=True, text=True, check=True).stdout
    assert ringlet.__version__ in said


def test_versions_agree():
    assert importlib.metadata.version("ringlet") == ringlet.__version__


@pytest.mark.parametrize("package", ["ringlet", "ringlet-mlx"])
def test_the_licence_is_inside(package):
    try:
        installed = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        assert package != "ringlet"
        pytest.skip(f"{package} is not installed")
    licence = (Path(__file__).resolve().parents[1] / "LICENSE").read_text()
    assert "Permission is hereby granted" in licence
    assert installed.metadata.get_all("License-File") == ["LICENSE"]
    assert installed.read_text("licenses/LICENSE") == licence


def test_types_are_described():
    assert (FOLDER / "py.typed").exists()
    stub = (FOLDER / "_ringlet.pyi").read_text()
    for described in (
        "class Group",
        "def init",
        "def rejoin",
        "class ElasticFsdp(ElasticShards)",
        "class ElasticFullyShard(ElasticShards)",
        "class OuterTrainer",
        "class TraceSpan",
        "def __enter__(self) -> TraceSpan",
        "trace: str | None",
    ):
        assert described in stub, described


def test_all_public_names_exist():
    assert sorted(ringlet.__all__) == ringlet.__all__
    for name in ringlet.__all__:
        assert hasattr(ringlet, name)


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is missing")
def test_the_module_exports_nothing_else():
    """Another module of the process may have an OpenSSL or a libuv of its own."""
    names = subprocess.run(["nm", "-D", "--defined-only", _ringlet.__file__], capture_output=True, text=True, check=True).stdout.split("\n")
    assert [line.split()[-1] for line in names if line] == ["PyInit__ringlet"]
