"""The checks of tidy.py. Each takes a Tree and yields Findings."""

import json
import posixpath
import re
from typing import Callable, Dict, Iterator

import rules
from public_symbols import c_symbols, cpp_symbols
from tree import Finding, Tree

Check = Callable[[Tree], Iterator[Finding]]
CHECKS: Dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def is_script(tree: Tree, path: str) -> bool:
    return tree.texts[path].startswith("#!")


@check
def line_length(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths():
        code = path.endswith(rules.CODE) or is_script(tree, path)
        if path.startswith(rules.GENERATED) or not (code or path.endswith(rules.PROSE)):
            continue
        cmake = path.endswith((".cmake", "CMakeLists.txt"))
        limit = rules.CMAKE_LINE_LENGTH if cmake else rules.LINE_LENGTH if code else rules.PROSE_LINE_LENGTH
        for number, line in enumerate(tree.lines(path), 1):
            if not code and re.match(r"\s*(\||\[|!\[|<)", line):
                continue
            if cmake and re.fullmatch(r"[\s\w./()]*", line) and line.count(".cpp") > 1:
                continue
            if len(line) > limit:
                yield Finding(path, number, f"{len(line)} characters, where {limit} are the limit")


@check
def white_space(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths():
        text = tree.texts[path]
        if text and not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "the last line has no end")
        if text.endswith("\n\n"):
            yield Finding(path, text.count("\n"), "an empty line at the end")
        for number, line in enumerate(tree.lines(path), 1):
            if "\t" in line:
                yield Finding(path, number, "a tab")
            if line.endswith("\r"):
                yield Finding(path, number, "a line end of Windows")
            elif line != line.rstrip():
                yield Finding(path, number, "blanks at the end")


@check
def banned(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths():
        # The rules and their samples may contain what they ban.
        if path.startswith("tests/tidy/"):
            continue
        here = [rule for rule in rules.BANNED if path.startswith(rule.where or ("",)) and path.endswith(rule.endings or ("",))]
        for number, line in enumerate(tree.lines(path), 1):
            for rule in here:
                match = re.search(rule.pattern, line)
                if match:
                    yield Finding(path, number, f"'{match.group().strip()}'; rather: {rule.instead}")


INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


@check
def includes(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths(*rules.CPP):
        for number, line in enumerate(tree.lines(path), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            header = match.group(1)
            if header.endswith((".cpp", ".c")):
                yield Finding(path, number, "a source file is compiled by itself")
            if path.startswith("include/") and not re.fullmatch(rules.PUBLIC_INCLUDES, header):
                yield Finding(path, number, f"<{header}> is nothing that each user of the library has")
            own = posixpath.join(posixpath.dirname(path), header) in tree.texts
            if path.startswith("examples/") and not own and not re.fullmatch(rules.EXAMPLE_INCLUDES, header):
                yield Finding(path, number, f"<{header}> is nothing that an example may use")
            if path.startswith(rules.FREE_TO_INCLUDE):
                continue
            for rule in rules.CONFINED:
                if re.fullmatch(rule.header, header) and not path.startswith(rule.allowed):
                    yield Finding(path, number, f"<{header}> is for {', '.join(rule.allowed) or 'nobody'}: {rule.reason}")


@check
def include_guard(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths(".hpp", ".h"):
        first = next((line for line in tree.lines(path) if line and not line.startswith("//")), "")
        if first != "#pragma once":
            yield Finding(path, 1, "a header begins with #pragma once")


@check
def file_length(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths(".cpp", ".hpp", ".c", ".h", ".ts", ".mjs", ".js", ".py"):
        count = len(tree.lines(path)) - 1
        limit = rules.FILE_LINES_OF.get(path, rules.FILE_LINES)
        if count > limit:
            yield Finding(path, 0, f"{count} lines, where {limit} are the limit; does it still have one job?")
        elif path in rules.FILE_LINES_OF and count <= rules.FILE_LINES:
            yield Finding(path, 0, f"{count} lines need no limit of their own (FILE_LINES_OF)")


@check
def built(tree: Tree) -> Iterator[Finding]:
    """A source file that no list of the build names is dead code, or a test that never runs."""
    named, patterns = set(), []
    for list_path in tree.paths("CMakeLists.txt", ".cmake", rules.ALSO_LISTS_SOURCES):
        for word in re.findall(r"[\w./${}-]+\.(?:cpp|c)\b", tree.texts[list_path]):
            folder, name = posixpath.split(word)
            named.add(name)
            if "$" in name:
                # The variable belongs to a loop over the list's own folder.
                full = posixpath.join(posixpath.dirname(list_path), folder, name)
                patterns.append(re.sub(r"\\\$\\{\w+\\}", r"\\w+", re.escape(full)))
    by_pattern = re.compile("|".join(patterns) or "(?!)")
    for path in tree.paths(".cpp", ".c"):
        if posixpath.basename(path) not in named and not by_pattern.fullmatch(path):
            yield Finding(path, 0, "no CMakeLists.txt names it")


@check
def licence(tree: Tree) -> Iterator[Finding]:
    text = tree.texts.get("LICENSE", "")
    if not text.startswith("MIT License\n"):
        yield Finding("LICENSE", 0, "it is to be the MIT licence")
    if "The Ringlet authors" not in text:
        yield Finding("LICENSE", 0, "the holders are the Ringlet authors")
    if "(LICENSE)" not in tree.texts.get("README.md", ""):
        yield Finding("README.md", 0, "it does not link to LICENSE")
    if json.loads(tree.texts.get("wasm/package.json", "{}")).get("license") != "MIT":
        yield Finding("wasm/package.json", 0, 'its "license" is to be "MIT"')


@check
def versions(tree: Tree) -> Iterator[Finding]:
    """The version is set in the top CMakeLists.txt; files that cannot take it from there must say the same."""
    match = re.search(r"^project\(Ringlet VERSION (\d+)\.(\d+)\.(\d+)\b", tree.texts.get("CMakeLists.txt", ""), re.MULTILINE)
    if not match:
        yield Finding("CMakeLists.txt", 0, "no project(Ringlet VERSION ...)")
        return
    version, minor = ".".join(match.groups()), ".".join(match.groups()[:2])

    def expect(path: str, found: object, wanted: str) -> Iterator[Finding]:
        if found != wanted:
            yield Finding(path, 0, f"it says {found}, and CMakeLists.txt {wanted}")

    package = json.loads(tree.texts.get("wasm/package.json", "{}"))
    yield from expect("wasm/package.json", package.get("version"), version)
    lock = json.loads(tree.texts.get("wasm/package-lock.json", "{}"))
    yield from expect("wasm/package-lock.json", lock.get("version"), version)
    yield from expect("wasm/package-lock.json", lock.get("packages", {}).get("", {}).get("version"), version)
    for path in tree.paths(".md", "CMakeLists.txt"):
        for found in re.findall(r"find_package\(Ringlet (\d[\d.]*)", tree.texts[path]):
            yield from expect(path, found, minor)
    for found in re.findall(r'The library\'s version, "([^"]*)"', tree.texts.get("include/ringlet/c/base.h", "")):
        yield from expect("include/ringlet/c/base.h", found, version)
    headings = re.findall(r"^## \[([^\]]+)\]", tree.texts.get("CHANGELOG.md", ""), re.MULTILINE)
    if version not in headings:
        yield Finding("CHANGELOG.md", 0, f"no heading '## [{version}]'")


@check
def public_symbols(tree: Tree) -> Iterator[Finding]:
    """Everything that callers are offered must be shown or tested somewhere."""
    users = tree.paths(under="tests/") + tree.paths(under="examples/") + tree.paths(under="docs/") + tree.paths("README.md")
    words = set()
    for path in users:
        if not path.startswith("tests/tidy/"):
            words.update(re.findall(r"\w+", tree.texts[path]))
    for path in tree.paths(".hpp", ".h", under="include/ringlet/"):
        if path.startswith("include/ringlet/detail/"):
            continue
        symbols = cpp_symbols if path.endswith(".hpp") else c_symbols
        for name, line in symbols(tree.texts[path]):
            if name not in words and name not in rules.UNREFERENCED_SYMBOLS:
                yield Finding(path, line, f"{name} is in no test, example or document")


@check
def environment_variables(tree: Tree) -> Iterator[Finding]:
    documents = "\n".join(tree.texts[path] for path in tree.paths(".md"))
    for path in tree.paths(*rules.CPP):
        if path.startswith(("tests/", "bench/", "examples/", "include/")):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for name in re.findall(r'"(RINGLET_[A-Z_]+)"', line):
                if name not in rules.INTERNAL_VARIABLES and not re.search(rf"\b{name}\b", documents):
                    yield Finding(path, number, f"the variable {name} is in no document")


@check
def links(tree: Tree) -> Iterator[Finding]:
    """Links between the repository's own files, and to headings of documents, must lead somewhere."""
    folders = {posixpath.dirname(path) for path in tree.paths()}
    folders |= {posixpath.dirname(folder) for folder in folders}

    def anchors(path: str) -> set:
        headings = re.findall(r"^#+ +(.*?)\s*$", tree.texts[path], re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    for path in tree.paths(".md"):
        is_code = False
        for number, line in enumerate(tree.lines(path), 1):
            is_code ^= line.lstrip().startswith("```")
            if is_code:  # a lambda's head looks like a link
                continue
            for target in re.findall(r"(?:\]\(|src=\")([^)\s\"]+)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                full = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
                if full not in tree.texts and full not in folders and not full.endswith(".png"):
                    yield Finding(path, number, f"{target} leads nowhere")
                elif anchor and full in tree.texts and full.endswith(".md") and anchor not in anchors(full):
                    yield Finding(path, number, f"{target}: no such heading")


@check
def names_of_sources(tree: Tree) -> Iterator[Finding]:
    """Documents about the sources name files and declarations that are there."""
    documents = [path for path in tree.paths(".md") if path.startswith(rules.NAMES_SOURCES)]
    sources = [path for path in tree.paths() if not path.endswith(rules.PROSE) and not path.startswith("tests/tidy/")]
    words = {word for path in sources for word in re.findall(r"\w+", tree.texts[path])}
    parts = {path[:end] for path in tree.paths() for end in [match.start() for match in re.finditer("/", path)] + [len(path)]}
    tops = {part for part in parts if "/" not in part}

    def is_there(name: str) -> bool:
        if "/" not in name:
            return all(word in words or word.isupper() for word in re.findall(r"\w+", name))
        pattern = re.sub(r"\\\*|\b[A-Z]+\b", r"[^/]*", re.escape(name.rstrip("/")))
        return name.partition("/")[0] not in tops or name.startswith(rules.NOT_READ) or any(re.fullmatch(pattern, part) for part in parts)

    for path in documents:
        is_code = False
        for number, line in enumerate(tree.lines(path), 1):
            is_code ^= line.lstrip().startswith("```")
            names = [] if is_code else re.findall(r"`((?:\w+(?:::\w+)*(?:\(\))?)|[\w.*-]+/[\w./*-]*)`", line)
            for name in names:
                if not is_there(name):
                    yield Finding(path, number, f"`{name}` is nowhere in the sources")


@check
def usage(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths(under="scripts/"):
        # A folder below scripts/ has parts of a script; people start the files beside it.
        if path.count("/") > 1:
            continue
        if not re.search(r"--help \| -h\)|add_argument|argparse", tree.texts[path]):
            yield Finding(path, 0, "no --help")
