"""Trees of arrays: nested dicts, lists and tuples, whose leaves are named by their way, as in "layers.0.weight"."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from . import _ringlet
from .arrays import Output, array_of, view_to_read, view_to_write
from .errors import InvalidArgument

Leaf = Tuple[str, Any]


def leaves_of(tree: Any, name: str = "") -> Iterator[Leaf]:
    """The leaves with their names, in order. A tree that is an array itself has one, called "value"."""
    if isinstance(tree, dict):
        children: Any = tree.items()
    elif isinstance(tree, (list, tuple)):
        children = enumerate(tree)
    else:
        yield name or "value", tree
        return
    for key, child in children:
        yield from leaves_of(child, f"{name}.{_text_of(key)}" if name else _text_of(key))


def _text_of(key: Any) -> str:
    """A part of a name, which is UTF-8 in checkpoints and between ranks."""
    text = str(key)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"the tree has the key {key!r}, which is no Unicode text") from None
    return text


def rebuilt(tree: Any, leaves: Iterator[Any]) -> Any:
    """A tree of the same form, with other leaves, which come in the order of leaves_of()."""
    if isinstance(tree, dict):
        return _of_class(tree, {key: rebuilt(child, leaves) for key, child in tree.items()})
    if isinstance(tree, tuple) and hasattr(tree, "_make"):
        return tree._make(rebuilt(child, leaves) for child in tree)
    if isinstance(tree, tuple):
        return _tuple_of_class(tree, [rebuilt(child, leaves) for child in tree])
    if isinstance(tree, list):
        return _of_class(tree, [rebuilt(child, leaves) for child in tree])
    return next(leaves)


def _tuple_of_class(tree: Any, children: List[Any]) -> Any:
    try:
        made = tuple.__new__(type(tree), children)
    except TypeError:
        return type(tree)(children)  # of a class in C
    if hasattr(tree, "__dict__"):
        made.__dict__.update(tree.__dict__)
    return made


def _of_class(tree: Any, children: Any) -> Any:
    """Other children in an object of the tree's own class, whose constructor may take other arguments than that of dict or list."""
    if type(tree) is type(children):
        return children
    try:
        # A copy also has what the object has besides, such as a default for what is missing.
        copied = copy.copy(tree)
        if copied is not tree:
            for key, child in children.items() if isinstance(tree, dict) else enumerate(children):
                copied[key] = child
            return copied
    except Exception:
        pass  # objects of the class are not copied, or never change
    return type(tree)(children)


def of_each(tree: Any, function: Callable[[Any], Any]) -> Iterator[Leaf]:
    """What a function makes of each leaf, with the leaf's name, which its errors then say, too."""
    for name, leaf in leaves_of(tree):
        try:
            made = function(leaf)
        except (InvalidArgument, TypeError) as error:
            raise type(error)(f"'{name}': {error}") from None
        yield name, made


def names_of(tree: Any) -> List[str]:
    return [name for name, _ in leaves_of(tree)]


def in_order(leaves: List[Leaf], names: Sequence[str]) -> List[Leaf]:
    """The leaves in the order of these names, by which trees are matched, such as gradients and parameters; those with other names come last."""
    places = {name: place for place, name in enumerate(names)}
    return sorted(leaves, key=lambda leaf: places.get(leaf[0], len(places)))


def tree_to_read(tree: Any, names: Sequence[str] = ()) -> _ringlet.Tree:
    return _ringlet.Tree(in_order([(name, view) for name, (_, view) in of_each(tree, view_to_read)], names))


def tree_to_write(tree: Any) -> _ringlet.Tree:
    return _ringlet.Tree(list(of_each(tree, view_to_write)), write=True)


class CopiedTree:
    """A copy of a tree, in arrays of the same kinds, for a call that changes it: `tree` is changed, and finish() makes the arrays of it."""

    def __init__(self, tree: Any, names: Sequence[str] = ()) -> None:
        self._form = tree
        self._outputs: List[Output] = []
        leaves = []
        for name, (kind, source) in of_each(tree, view_to_read):
            output = kind.empty(source.dtype, source.shape)
            _ringlet.copy(source, output.view)
            self._outputs.append(output)
            leaves.append((name, output.view))
        self.tree = _ringlet.Tree(in_order(leaves, names), write=True)

    def finish(self) -> Any:
        return rebuilt(self._form, iter([output.finish() for output in self._outputs]))


def exported_leaves(leaves: Callable[[], list]) -> Dict[str, np.ndarray]:
    """The library's own tensors, by name, as NumPy arrays of their memory."""
    return {name: array_of(*memory) for name, memory in leaves()}
