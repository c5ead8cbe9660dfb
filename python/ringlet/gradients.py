"""Averages of gradients, and their norm."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from . import _ringlet
from .arrays import dtype_name
from .group import Group
from .trees import CopiedTree, tree_to_write


def average_gradients(
    gradients: Any,
    group: Group,
    *,
    all_reduce_size: int = 32 << 20,
    first_bucket_size: Optional[int] = None,
    communication_type: Any = None,
    weight: Optional[float] = None,
    stream: int = 0,
) -> Any:
    """MLX's nn.average_gradients: a tree of the means over the group. Names, order, dtypes and shapes are the same on all ranks.

    Tensors are moved in buckets of `all_reduce_size` bytes, in the dtype `communication_type` ("f16", "bf16"; by default their own). With
    `weight`, such as this rank's number of samples, the result is sum(weight * gradient) / sum(weight).
    """
    copied = CopiedTree(gradients)
    _average(copied.tree, group, all_reduce_size, first_bucket_size, communication_type, weight, stream)
    return copied.finish()


def average_gradients_(
    gradients: Any,
    group: Group,
    *,
    all_reduce_size: int = 32 << 20,
    first_bucket_size: Optional[int] = None,
    communication_type: Any = None,
    weight: Optional[float] = None,
    stream: int = 0,
) -> Any:
    """The same in place, of arrays that may be changed: NumPy's and PyTorch's."""
    _average(tree_to_write(gradients), group, all_reduce_size, first_bucket_size, communication_type, weight, stream)
    return gradients


def _average(tree: _ringlet.Tree, group: Group, size: int, first: Optional[int], dtype: Any, weight: Optional[float], stream: int) -> None:
    _ringlet.average_gradients(group._handle, tree, size, first, None if dtype is None else dtype_name(dtype), weight, stream)


def clip_grad_norm(gradients: Any, max_norm: float) -> Tuple[Any, float]:
    """MLX's optimizers.clip_grad_norm: the gradients scaled so that their norm is at most `max_norm`, and their norm before."""
    copied = CopiedTree(gradients)
    norm = _ringlet.clip_grad_norm(copied.tree, max_norm)
    return copied.finish(), norm


def clip_grad_norm_(gradients: Any, max_norm: float) -> float:
    """The same in place; returns the norm before."""
    return _ringlet.clip_grad_norm(tree_to_write(gradients), max_norm)


def clip_grad_norm_sharded(gradients: Any, max_norm: float, group: Group, *, stream: int = 0) -> Tuple[Any, float]:
    """MLX's nn.utils.clip_grad_norm_sharded: as clip_grad_norm(), by the norm of all ranks' shards together."""
    copied = CopiedTree(gradients)
    norm = _ringlet.clip_grad_norm_sharded(group._handle, copied.tree, max_norm, stream)
    return copied.finish(), norm
