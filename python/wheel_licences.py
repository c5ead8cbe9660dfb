"""Puts the licences of what a wheel holds of others into it.

    python wheel_licences.py WHEEL FOLDER [--objects BUILD [TARGET...]]...

WHEEL is one that auditwheel has repaired; the one with the licences is written into FOLDER. They are those of the libraries that auditwheel put in, and of
headers and archives that were compiled in: what ninja read to make these targets of a build (or its default ones). Debian's packages have them, and those of
this Python's environment. What no package names, and a package without a licence, end this program with exit code 1.
"""

import argparse
import base64
import collections
import csv
import hashlib
import importlib.metadata
import io
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The compiler and the C library: what they put into programs may be passed on without a word of theirs.
TOOLCHAIN = re.compile(r"(libc6|linux-libc|libstdc\+\+-\d+|libgcc-\d+|libclang-common-\d+)-dev(-.*)?")
COMMON = re.compile(r"/usr/share/common-licenses/([\w.-]*\w)")
OF_AUDITWHEEL = re.compile(r"[^/]+\.libs/(?P<stem>.+)-(?P<hash>[0-9a-f]{8})(?P<rest>\.so.*)")


class Missing(Exception):
    """What has no licence, for the user."""


class Licence:
    """The text of one project, and what of it is in the wheel."""

    def __init__(self, version, text):
        self.version = version
        self.text = text
        self.holds = []

    def page(self, name):
        held = "".join(f"  {what}\n" for what in self.holds)
        return f"{name} {self.version}. In this package is of it:\n{held}\n{self.text}"


def output_of(*words):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def debian_packages(files):
    """Which package each of these files belongs to, of those that belong to one."""
    try:
        said = output_of("dpkg", "-S", *files).stdout if files else ""
    except FileNotFoundError:
        raise Missing(
            "dpkg is missing: only Debian's packages, or those of systems made from it, tell which licence a library has"
        ) from None
    lines = (line.partition(": ") for line in said.splitlines() if not line.startswith("diversion "))
    return {file: names.split(", ")[0] for names, _, file in lines}


def of_debian(package):
    """The name of a package's project, and its licence."""
    asked = output_of("dpkg-query", "-W", "-f", "${source:Package}\n${source:Version}", package)
    notice = Path("/usr/share/doc", package.partition(":")[0], "copyright")
    if asked.returncode != 0 or not notice.exists():
        raise Missing(f"Debian's package {package} has no licence in {notice}")
    text = notice.read_text()
    for name in sorted(set(COMMON.findall(text))):
        common = Path("/usr/share/common-licenses", name)
        if not common.exists():
            raise Missing(f"{notice} names {common}, which is not there")
        text += f"\n---- {name} ----\n\n{common.read_text()}"
    project, version = asked.stdout.split("\n")
    return project, Licence(version, text)


def of_environment(package, headers):
    """The same for a package of this Python's. Headers that it has from others begin with a licence of their own."""
    texts = [
        file.read_text()
        for file in map(package.locate_file, package.files or [])
        if re.search(r"dist-info/.*(LICEN[CS]E|COPYING)", str(file))
    ]
    if not texts:
        raise Missing(f"the package {package.name} has no licence")
    for header in headers:
        comment = re.match(r"\s*/\*.*?\*/", Path(header).read_text(), re.DOTALL)
        if comment and re.search(r"Permission is hereby granted|Redistribution and use", comment[0]) and comment[0] not in texts:
            texts.append(comment[0])
    return package.name, Licence(package.version, "\n\n".join(texts))


def libraries_in(names):
    """The libraries that auditwheel has put in, each with the file that it was: its name has the beginning of that file's hash."""
    for name in names:
        if not re.fullmatch(r"[^/]+\.libs/[^/]+", name):
            continue
        parts = OF_AUDITWHEEL.fullmatch(name)
        original = parts["stem"] + parts["rest"] if parts else Path(name).name
        candidates = debian_packages([f"*/{original}"])
        for file, package in candidates.items():
            if parts and hashlib.sha256(Path(file).read_bytes()).hexdigest().startswith(parts["hash"]):
                yield name, package
                break
        else:
            raise Missing(f"no package of this system has the library {name}")


def compiled_in(build, targets):
    """The files of others that were compiled or linked into these targets, shared libraries apart."""
    build = Path(build).resolve()
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE))
    ours = (f"{ROOT}/", f"{cache['CMAKE_HOME_DIRECTORY']}/")
    # Another version of ninja would begin this build's log anew.
    program = cache["CMAKE_MAKE_PROGRAM"]
    read = collections.defaultdict(list)
    for line in output_of(program, "-C", build, "-t", "deps").stdout.splitlines():
        if line.startswith(" "):
            read[made].append(line.strip())
        else:
            made = line.partition(": #deps")[0]
    inputs = output_of(program, "-C", build, "-t", "inputs", *targets)
    if inputs.returncode != 0 or not any(read[name] for name in inputs.stdout.splitlines()):
        raise Missing(f"ninja does not know what {build} was built from: {inputs.stderr.strip()}")
    for name in inputs.stdout.splitlines():
        for file in [name, *read[name]]:
            path = os.path.normpath(build / file)
            is_ours = path.startswith(f"{build}/") or (path.startswith(ours) and "/site-packages/" not in path)
            if not is_ours and os.path.isfile(path) and not re.search(r"\.so(\.[\d.]+)?$", path):
                yield path


def licences_of(names, objects):
    """All licences, by the names of their projects."""
    licences = {}
    for library, package in libraries_in(names):
        project, licence = of_debian(package)
        licences.setdefault(project, licence).holds.append(library)
    headers = {file for build, *targets in objects for file in compiled_in(build, targets)}
    headers = {file for file in headers if not file.startswith((sysconfig.get_path("include"), sysconfig.get_path("platinclude")))}
    # A header may be at home in a folder that is a link to another.
    installed = debian_packages(sorted({os.path.realpath(file) for file in headers if "/site-packages/" not in file}))
    found = [(package, of_debian) for package in sorted(set(installed.values())) if not TOOLCHAIN.fullmatch(package.partition(":")[0])]
    belongs = set(installed)
    for package in importlib.metadata.distributions():
        files = {os.path.realpath(package.locate_file(file)) for file in package.files or []}
        used = sorted(file for file in headers if os.path.realpath(file) in files)
        if used:
            found.append((package, lambda package, used=used: of_environment(package, used)))
            belongs.update(map(os.path.realpath, used))
    strange = sorted(file for file in headers if os.path.realpath(file) not in belongs)
    if strange:
        raise Missing(f"no package has what was compiled in: {', '.join(strange)}")
    for package, licence_of in found:
        project, licence = licence_of(package)
        licences.setdefault(project, licence).holds.append("what its headers or archives have compiled in")
    return licences


def row(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", len(data)


def add(wheel, folder, objects):
    with zipfile.ZipFile(wheel) as old:
        contents = {info.filename: (info, old.read(info)) for info in old.infolist() if not info.is_dir()}
    (metadata,) = (name for name in contents if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
    record, licenses = (metadata.replace("METADATA", name) for name in ("RECORD", "licenses/"))
    licences = licences_of(list(contents), objects)
    info, text = contents[metadata]
    head, separator, body = text.decode().partition("\n\n")
    for project, licence in sorted(licences.items()):
        head += f"\nLicense-File: {project}.txt"
        added = zipfile.ZipInfo(f"{licenses}{project}.txt", info.date_time)
        added.external_attr = info.external_attr
        contents[added.filename] = (added, licence.page(project).encode())
    contents[metadata] = (info, (head + separator + body).encode())
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerows(row(name, data) for name, (_, data) in contents.items() if name != record)
    writer.writerow((record, "", ""))
    contents[record] = (contents[record][0], rows.getvalue().encode())
    with zipfile.ZipFile(folder / wheel.name, "w") as new:
        for info, data in contents.values():
            new.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
    return licences


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--objects", nargs="+", action="append", default=[], metavar=("BUILD", "TARGET"))
    options = parser.parse_args()
    try:
        licences = add(options.wheel, options.folder, options.objects)
    except Missing as missing:
        sys.exit(f"{options.wheel.name}: {missing}")
    print(f"{options.wheel.name}: licences of {', '.join(sorted(licences)) or 'no others'}")


if __name__ == "__main__":
    main()
