"""The arguments of torch's calls, in the several forms in which they come."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, List

import torch
import torch.distributed as dist

import ringlet

from .. import _ringlet

_RedOpType = dist.ReduceOp.RedOpType

# Streams: of collectives, of what sparse sums move when they know how much, and of the tags between them.
COLLECTIVES = 0
SPARSE_VALUES = 1023
_FIRST_TAG, _MOST_TAG = 1, 1021

_OP_NAMES = {
    "SUM": "sum",
    "AVG": "mean",
    "PRODUCT": "prod",
    "MIN": "min",
    "MAX": "max",
    "BAND": "bit_and",
    "BOR": "bit_or",
    "BXOR": "bit_xor",
}
_OPS = {getattr(_RedOpType, of_torch): ours for of_torch, ours in _OP_NAMES.items() if ours in [*_ringlet.reduce_ops, "mean"]}


def seconds_of(timeout: timedelta) -> float:
    """The seconds of a timeout, at most 1e9 (30 years), the longest that Ringlet takes."""
    return min(timeout.total_seconds(), 1e9)


def list_of(tensors: Any) -> List[torch.Tensor]:
    # Asking torch whether something is a tensor takes a microsecond.
    if type(tensors) is list:
        return tensors
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def one(tensors: Any) -> torch.Tensor:
    if type(tensors) is not list and isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ringlet.InvalidArgument(f"{len(tensors)} tensors where one is expected")
    return tensors[0]


def list_of_rank(lists: Any) -> List[torch.Tensor]:
    """The list of this rank: torch gives a list of one list, and its short forms the list itself."""
    return list_of(lists[0]) if len(lists) == 1 and not isinstance(lists[0], torch.Tensor) else list_of(lists)


def op_of(options: Any) -> str:
    """The name of the operation of a call's options, of an operation, or of None."""
    op = getattr(options, "reduceOp", options)
    kind = op.op if type(op) is dist.ReduceOp else _RedOpType.SUM if op is None else op
    name = _OPS.get(kind)
    if name is None:
        raise ringlet.InvalidArgument(f"there is no operation {getattr(kind, 'name', kind)}; there are {', '.join(op.name for op in _OPS)}")
    return name


def stream_of(tag: int) -> int:
    if not 0 <= tag <= _MOST_TAG:
        raise ringlet.InvalidArgument(f"tag {tag}; tags are from 0 to {_MOST_TAG}")
    return _FIRST_TAG + tag
