"""What is in the package beside the calls."""

import base64
import hashlib
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


@pytest.fixture(params=["ringlet", "ringlet-mlx"])
def installed(request):
    try:
        return importlib.metadata.distribution(request.param)
    except importlib.metadata.PackageNotFoundError:
        assert request.param != "ringlet"
        pytest.skip(f"{request.param} is not installed")


def test_the_licence_is_inside(installed):
    licence = (Path(__file__).resolve().parents[1] / "LICENSE").read_text()
    assert "Permission is hereby granted" in licence
    assert installed.metadata.get_all("License-File")[0] == "LICENSE"
    assert installed.read_text("licenses/LICENSE") == licence


def test_licences_of_all_that_is_bundled_are_inside(installed):
    libraries = [str(file) for file in installed.files if file.parts[0].endswith(".libs")]
    names = installed.metadata.get_all("License-File")
    if names == ["LICENSE"] and not libraries:
        pytest.skip("it was built here, and holds nothing of others")
    pages = {name: installed.read_text(f"licenses/{name}") for name in names if name != "LICENSE"}
    for name, page in pages.items():
        assert page and "Copyright" in page and len(page) > 1000, name
    for library in libraries:
        assert [name for name, page in pages.items() if f"\n  {library}\n" in page], library
    # What is compiled in has no file of its own. The second is a library that the first one brings.
    assert "Wenzel Jakob" in pages["nanobind.txt"] and "Thibaut Goetghebuer-Planchon" in pages["nanobind.txt"]
    if installed.name == "ringlet":
        assert libraries and {"fmtlib.txt", "nlohmann-json3.txt"} <= set(pages)
        # Debian's notice only names this one.
        assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in pages["openssl.txt"]


def test_the_record_tells_all_files(installed):
    recorded = {str(file) for file in installed.files}
    for name in installed.metadata.get_all("License-File"):
        assert f"{installed.name.replace('-', '_')}-{installed.version}.dist-info/licenses/{name}" in recorded
    for file in installed.files:
        if file.hash and file.suffix != ".pyc":
            digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file


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


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="this Python always has the lock")
def test_a_python_that_runs_without_the_lock_is_refused():
    """As a free-threaded one does with PYTHON_GIL=0; otherwise it takes the lock back when it imports the module."""
    program = "import sys; sys._is_gil_enabled = lambda: False; import ringlet"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == 1
    assert said.stderr.endswith("ImportError: ringlet needs the interpreter's lock: run this Python without PYTHON_GIL=0 and -X gil=0\n")


def test_all_public_names_exist():
    assert sorted(ringlet.__all__) == ringlet.__all__
    for name in ringlet.__all__:
        assert hasattr(ringlet, name)


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is missing")
def test_the_module_exports_nothing_else():
    """Another module of the process may have an OpenSSL or a libuv of its own."""
    names = subprocess.run(["nm", "-D", "--defined-only", _ringlet.__file__], capture_output=True, text=True, check=True).stdout.split("\n")
    assert [line.split()[-1] for line in names if line] == ["PyInit__ringlet"]
