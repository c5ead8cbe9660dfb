"""Averages of a module's gradients, for loops without a wrapper around it."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.distributed as dist

import ringlet

from ..arguments import shown
from .tracing import untraced


def group_of(group: Any) -> ringlet.Group:
    """The group beneath one of torch's; None is the default group."""
    if isinstance(group, ringlet.Group):
        return group
    if group is None and not dist.is_initialized():
        raise ringlet.InvalidArgument('there is no process group yet; call init_process_group("ringlet") first')
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, dist.ProcessGroup):
        raise ringlet.InvalidArgument(f"the group is {shown(group)}; it is one of torch's process groups, or a ringlet.Group")
    over = getattr(group._get_backend(torch.device("cpu")), "ringlet", None)
    if over is None:
        raise ringlet.InvalidArgument(f"the process group's back end is {dist.get_backend(group)}; it has to be ringlet")
    return over


@untraced
def average_gradients(
    module: torch.nn.Module, group: Any = None, *, weight: Optional[float] = None, wire: Any = None, all_reduce_size: int = 32 << 20
) -> None:
    """Makes each gradient of a module its mean over a group, which is torch's or a ringlet.Group; to be called after backward(), by all ranks.

    A gradient that is None counts as zeros where another rank has one; one that no rank has stays None. The other arguments are as
    ringlet.average_gradients() has them, where `wire` is called `communication_type`.
    """
    over, parameters = group_of(group), dict(module.named_parameters())
    for name, parameter in parameters.items():
        if parameter.grad is not None and parameter.grad.layout != torch.strided:
            raise ringlet.InvalidArgument(
                f"the gradient of '{name}' is {parameter.grad.layout}; DistributedDataParallel adds sparse gradients, and a layer with "
                "sparse=False has none"
            )
    are_there = torch.tensor([parameter.grad is not None for parameter in parameters.values()], dtype=torch.uint8, device="cpu")
    over.all_max_(are_there)
    gradients = {}
    for (name, parameter), is_there in zip(parameters.items(), are_there.tolist()):
        if is_there:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients[name] = parameter.grad
    ringlet.average_gradients_(gradients, over, all_reduce_size=all_reduce_size, communication_type=wire, weight=weight)
