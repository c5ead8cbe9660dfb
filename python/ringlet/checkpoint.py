"""Checkpoints in the safetensors format, which any number of ranks loads."""

from __future__ import annotations

import operator
import os
from typing import Any, NamedTuple, Optional, Union

from . import _ringlet
from .arguments import handle_of, whole
from .errors import InvalidArgument
from .group import Group
from .trees import tree_to_write

Value = Union[int, float, str]


class SaveReport(NamedTuple):
    """What save_checkpoint() has written."""

    path: str  # the checkpoint's folder
    bytes: int  # by this rank
    total_bytes: int  # by all ranks


class NamedValues:
    """Numbers and texts by name, beside the tensors of a state."""

    _handle: Any

    def __setitem__(self, name: str, value: Value) -> None:
        """Sets a value, which is equal on all ranks when it is saved or handed over. Integers are of 64 bits, with a sign."""
        self._handle.set(name, _stored(name, value))

    def __getitem__(self, name: str) -> Value:
        value = self._handle.find(name)
        if value is None:
            raise KeyError(name)
        return value


def _stored(name: str, value: Any) -> Value:
    if isinstance(value, str):
        return value
    try:
        whole = operator.index(value)
    except TypeError:
        pass
    else:
        # The binding would take what does not fit for a float, which is another number.
        if not -(2**63) <= whole < 2**63:
            raise InvalidArgument(f"the value of '{name}' is {whole}; an integer is from -2**63 to 2**63 - 1")
        return whole
    if not hasattr(value, "__float__"):
        raise TypeError(f"the value of '{name}' is a {type(value).__name__}; it is an int, a float or a str")
    return float(value)


class Checkpoint(NamedValues):
    """What is saved or loaded: trees of NumPy's or PyTorch's arrays, which loading fills, and values. Every rank adds the same names in the same
    order."""

    def __init__(self) -> None:
        self._handle = _ringlet.Checkpoint()

    def add(self, name: str, tensors: Any) -> Checkpoint:
        """Adds tensors that every rank holds whole and that are equal on all ranks. They are called "name.leaf"."""
        self._handle.add(name, tree_to_write(tensors))
        return self

    def add_sharded(self, name: str, shards: Any, layout: _ringlet.ShardLayout) -> Checkpoint:
        """Adds this rank's shards of tensors that `layout` splits over the group."""
        self._handle.add_sharded(name, tree_to_write(shards), layout)
        return self

    def add_slots(self, name: str, slots: Any, layout: _ringlet.ShardLayout) -> Checkpoint:
        """Adds an optimizer's state for this rank's shards, as Optimizer.state() returns it."""
        self._handle.add_slots(name, tree_to_write(slots), layout)
        return self

    def __contains__(self, name: str) -> bool:
        return self._handle.find(name) is not None


def save_checkpoint(
    group: Group,
    directory: Union[str, os.PathLike],
    checkpoint: Checkpoint,
    *,
    step: int,
    keep: int = 2,
    stream: int = 0,
    timeout: Optional[float] = None,
) -> SaveReport:
    """Saves into a folder of this step below `directory`. Collective. Those saved before stay loadable until the new one is safe on all disks;
    of them `keep` - 1 are kept."""
    handle, saved = handle_of(group, Group, "group"), handle_of(checkpoint, Checkpoint, "checkpoint")
    said = _ringlet.save_checkpoint(handle, os.fspath(directory), saved, whole(step, "step"), keep, stream, timeout)
    return SaveReport(said["path"], said["bytes"], said["total_bytes"])


def load_checkpoint(
    group: Group,
    directory: Union[str, os.PathLike],
    checkpoint: Checkpoint,
    *,
    step: Optional[int] = None,
    stream: int = 0,
    timeout: Optional[float] = None,
) -> Optional[int]:
    """Fills the arrays and values, from the newest complete step or from `step`, and returns the step; None if there is none. Collective. The
    number of ranks and the sharding may differ from when it was saved."""
    handle, filled = handle_of(group, Group, "group"), handle_of(checkpoint, Checkpoint, "checkpoint")
    return _ringlet.load_checkpoint(handle, os.fspath(directory), filled, _step(step), stream, timeout)


def latest_checkpoint(
    group: Group,
    directory: Union[str, os.PathLike],
    *,
    step: Optional[int] = None,
    stream: int = 0,
    timeout: Optional[float] = None,
) -> Optional[int]:
    """The step that load_checkpoint() would load. Collective."""
    return _ringlet.latest_checkpoint(handle_of(group, Group, "group"), os.fspath(directory), _step(step), stream, timeout)


def _step(step: Optional[int]) -> Optional[int]:
    return None if step is None else whole(step, "step")
