"""The program that scripts/wheel puts licences into wheels with."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "wheel_licences.py"
WHEEL = "sample-1.0-py3-none-any.whl"
METADATA = "Metadata-Version: 2.4\nName: sample\nVersion: 1.0\nLicense-File: LICENSE\n\nWhat it is.\n"

pytestmark = pytest.mark.skipif(shutil.which("dpkg") is None, reason="the licences are those of Debian's packages")


def make(folder, **contents):
    """A wheel that auditwheel has put libraries into."""
    folder.mkdir()
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("sample/__init__.py", "")
        for name, data in contents.items():
            wheel.writestr(name, data)
        wheel.writestr("sample-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("sample-1.0.dist-info/licenses/LICENSE", "as you like")
        wheel.writestr("sample-1.0.dist-info/RECORD", "")
    return folder / WHEEL


def run(wheel, folder, *options):
    folder.mkdir()
    return subprocess.run([sys.executable, PROGRAM, wheel, folder, *options], capture_output=True, text=True)


def a_library():
    """A library of this system, and the name that auditwheel gives it."""
    listed = subprocess.run(["dpkg", "-L", "zlib1g"], capture_output=True, text=True, check=True).stdout.split()
    library = next(Path(name) for name in listed if ".so.1." in name)
    stem, rest = library.name.split(".", 1)
    return library, f"sample.libs/{stem}-{hashlib.sha256(library.read_bytes()).hexdigest()[:8]}.{rest}"


def test_a_library_gets_the_licence_of_its_package(tmp_path):
    library, name = a_library()
    # What auditwheel has changed in it does not matter: the name has the hash of what it was.
    said = run(make(tmp_path / "in", **{name: library.read_bytes() + b"changed"}), tmp_path / "out")
    assert said.returncode == 0 and said.stdout == f"{WHEEL}: licences of zlib\n", said
    with zipfile.ZipFile(tmp_path / "out" / WHEEL) as wheel:
        page = wheel.read("sample-1.0.dist-info/licenses/zlib.txt").decode()
        assert page.startswith("zlib 1") and f"\n  {name}\n" in page and "Mark Adler" in page
        assert wheel.read("sample-1.0.dist-info/METADATA").decode() == METADATA.replace("\n\n", "\nLicense-File: zlib.txt\n\n")
        record = wheel.read("sample-1.0.dist-info/RECORD").decode().splitlines()
        assert sorted(line.partition(",")[0] for line in record) == sorted(wheel.namelist())
        assert "sample-1.0.dist-info/RECORD,," in record


@pytest.mark.parametrize(
    "name", ["sample.libs/libnobodyhas-0123abcd.so.1", "sample.libs/libz-01234567.so.1.2.13", "sample.libs/libz.so.99"]
)
def test_a_library_of_no_package_ends_the_build(tmp_path, name):
    said = run(make(tmp_path / "in", **{name: b"elf"}), tmp_path / "out")
    assert said.returncode == 1 and said.stderr == f"{WHEEL}: no package of this system has the library {name}\n", said
    assert not list((tmp_path / "out").iterdir())


def build(folder, include):
    """Builds a program by CMake whose one source includes this."""
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(Sample C)\nadd_executable(sample sample.c)\n")
    (folder / "sample.c").write_text(f"#include {include}\nint main(void) {{ return 0; }}\n")
    subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", folder / "build"], check=True, capture_output=True)
    return folder / "build"


needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("ninja") is None, reason="CMake or Ninja is missing")


@needs_cmake
@pytest.mark.skipif(not Path("/usr/include/zlib.h").exists(), reason="zlib1g-dev is missing")
def test_what_is_compiled_in_gets_the_licence_of_its_package(tmp_path):
    (tmp_path / "built").mkdir()
    said = run(make(tmp_path / "in"), tmp_path / "out", "--objects", build(tmp_path / "built", "<zlib.h>"), "sample")
    assert said.returncode == 0 and said.stdout == f"{WHEEL}: licences of zlib\n", said


@needs_cmake
def test_a_header_of_no_package_ends_the_build(tmp_path):
    (tmp_path / "built").mkdir()
    (tmp_path / "strange.h").write_text("")
    said = run(make(tmp_path / "in"), tmp_path / "out", "--objects", build(tmp_path / "built", f'"{tmp_path}/strange.h"'))
    assert said.returncode == 1 and f"no package has what was compiled in: {tmp_path}/" in said.stderr, said
    assert f"{tmp_path}/strange.h" in said.stderr


@needs_cmake
def test_a_build_that_is_not_known_ends_the_build(tmp_path):
    (tmp_path / "built").mkdir()
    said = run(make(tmp_path / "in"), tmp_path / "out", "--objects", build(tmp_path / "built", "<stdio.h>"), "another")
    assert said.returncode == 1 and "ninja does not know what" in said.stderr, said
