"""The files that the checks read: those of a repository, or a few lines made up by a test."""

import os
import subprocess
from typing import Dict, List, NamedTuple

import rules


class Finding(NamedTuple):
    path: str
    line: int  # from 1; 0: the file as a whole
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class Tree:
    """The texts of files by path. Paths are relative to the root and have slashes."""

    def __init__(self, texts: Dict[str, str]):
        self.texts = texts

    def paths(self, *endings: str, under: str = "") -> List[str]:
        """Returns the paths with one of the endings; all where none is given."""
        return sorted(path for path in self.texts if path.startswith(under) and (not endings or path.endswith(endings)))

    def lines(self, path: str) -> List[str]:
        return self.texts[path].split("\n")


def names_by_git(root: str) -> List[str]:
    """Returns the files that are in the repository or would be added to it."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    return [name for name in subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0") if name]


def names_by_walk(root: str) -> List[str]:
    """Returns all files but those that building leaves there, for an archive without its history."""
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("build", "node_modules", ".git")]
        names += [os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/") for name in files]
    return names


def read_tree(root: str) -> Tree:
    names = names_by_git(root) if os.path.exists(os.path.join(root, ".git")) else names_by_walk(root)
    texts = {}
    for name in names:
        path = os.path.join(root, name)
        # Git lists a deleted file until the deletion is committed. Pictures are no text.
        if not os.path.isfile(path) or name.startswith(rules.NOT_READ) or name.endswith((".png", ".gif")):
            continue
        with open(path, encoding="utf-8", newline="") as file:
            texts[name] = file.read()
    return Tree(texts)
