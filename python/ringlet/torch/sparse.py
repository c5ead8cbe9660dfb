"""Sums of sparse tensors."""

from __future__ import annotations

from typing import Any, List, Optional

import torch

from .. import _ringlet
from .arguments import COLLECTIVES, SPARSE_VALUES
from .tensors import flat, mode_of_caller, room
from .work import LaterWork, Work


def add_sparse(handle: _ringlet.Group, tensor: torch.Tensor, event: Any, timeout: float) -> Work:
    """Adds the ranks' sparse tensors in place: indices and values of all are brought together, and those of one index added. What follows
    the exchange of their numbers is started by call-backs, which come in the same order on all ranks, in a stream of its own."""
    mine = tensor.detach().coalesce()
    indices, values = mine.indices().t().contiguous(), mine.values().contiguous()
    counts = room(handle.size(), torch.int64)
    count = torch.tensor([values.shape[0]], device="cpu")
    gathered: List[torch.Tensor] = []
    work, changing = LaterWork([tensor]), mode_of_caller()
    if event is not None:
        work.record(event)

    def bring() -> Work:
        operations = []
        for part in (indices, values):
            whole = part.new_empty((int(counts.sum()), *part.shape[1:]))
            source, target = flat(part), flat(whole)
            row = part[0].numel() * source.scale if len(part) else whole[0].numel() * source.scale if len(whole) else 1
            operations.append(handle.all_gather(source.view, target.view, [int(each) * row for each in counts], SPARSE_VALUES, timeout))
            gathered.append(whole)
        return Work(operations, gathered)

    def add() -> None:
        with changing():
            tensor.copy_(torch.sparse_coo_tensor(gathered[0].t(), gathered[1], tensor.shape).coalesce())

    def have_come(error: Optional[BaseException]) -> None:
        work.end(error or failure_of(add))

    def are_counted(error: Optional[BaseException]) -> None:
        error = error or failure_of(lambda: bring().when_done(have_come))
        if error is not None:
            work.end(error)

    counting = handle.all_gather(flat(count).view, flat(counts).view, None, COLLECTIVES, timeout)
    Work([counting], [counts]).when_done(are_counted)
    return work


def failure_of(function: Any) -> Optional[BaseException]:
    """The error that a function raises."""
    try:
        function()
    except Exception as error:
        return error
    return None
