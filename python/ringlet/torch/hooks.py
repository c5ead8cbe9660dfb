"""Communication hooks for DistributedDataParallel."""

import math
from typing import Any, List, Optional, Tuple

import torch
import torch.distributed as dist

from ..arguments import shown
from ..errors import InvalidArgument
from ..gradients import GradientAverager, to_wire
from .averages import group_of
from .tracing import untraced


class _Weighted:
    """How much this rank's gradients count."""

    _weight: Optional[float]
    _may_be_none = False

    @property
    def weight(self) -> Any:
        return self._weight

    @weight.setter
    def weight(self, weight: Any) -> None:
        self._weight = None if weight is None and self._may_be_none else _weight_of(weight)


def _weight_of(weight: Any) -> float:
    try:
        is_right = math.isfinite(weight) and weight >= 0
    except OverflowError:
        is_right = False
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"weight is {shown(weight)}; it is a number") from None
    if not is_right:
        raise InvalidArgument(f"weight is {shown(weight)}; it must be a finite number that is not negative")
    return float(weight)


class WeightedAverage(_Weighted):
    """The state of weighted_average_hook: how much this rank's gradients count. Set `weight` before each backward pass, say to the number of
    samples of which the loss is the mean; the ranks' weights need not be the same, but not all may be 0."""

    def __init__(self, process_group: Optional[dist.ProcessGroup] = None, weight: float = 1.0) -> None:
        self.process_group = process_group
        self.weight = weight
        self._total: Any = None


@untraced
def weighted_average_hook(state: WeightedAverage, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The ranks' gradients as an average weighted by WeightedAverage.weight: the gradient of the mean over all samples, also where ranks have
    different numbers of them. `model.register_comm_hook(WeightedAverage(), weighted_average_hook)`"""
    group = state.process_group if state.process_group is not None else dist.group.WORLD
    gradients = bucket.buffer()
    if bucket.index() == 0:
        # Once a step; the buckets come in this order on all ranks.
        total = torch.tensor([state.weight], dtype=torch.float64, device="cpu")
        state._total = dist.all_reduce(total, group=group, async_op=True).get_future()
    # The mean over no samples is NaN.
    weighted = gradients.mul_(state.weight) if state.weight != 0 else gradients.zero_()
    sums = dist.all_reduce(weighted, group=group, async_op=True).get_future()

    def divided(both: torch.futures.Future) -> torch.Tensor:
        total, values = (future.value()[0] for future in both.value())
        if not 0 < total.item() < math.inf:
            raise InvalidArgument(f"the ranks' weights add up to {total.item()}; that must be a finite number above 0")
        return values.div_(total.item())

    return torch.futures.collect_all([state._total, sums]).then(divided)


class WireAverage(_Weighted):
    """The state of wire_average_hook: how gradients cross the network, which is "f16", "bf16", "int8", "int4" or a ringlet.Wire, and how much
    this rank's count. `weight` is as WeightedAverage's where all ranks have one; without it the average is the plain mean."""

    _may_be_none = True

    def __init__(self, wire: Any, process_group: Optional[dist.ProcessGroup] = None, weight: Optional[float] = None) -> None:
        to_wire(wire, "wire")  # refuses what is none
        self.process_group = process_group
        self.weight = weight
        self._wire = wire
        self._averager: Optional[GradientAverager] = None
        self._parameters: List[List[torch.Tensor]] = []  # of each bucket
        self._pending: List[Tuple[torch.futures.Future, torch.Tensor]] = []

    def _new_averager(self) -> GradientAverager:
        group = group_of(self.process_group)
        return GradientAverager(group, all_reduce_size=8 << 20, communication_type=self._wire, weight=self.weight)

    def _averager_for(self, bucket: dist.GradBucket) -> GradientAverager:
        """An averager keeps what rounding leaves out by the order of the gradients, which changes when DDP forms its buckets anew after the
        first step: then another one begins."""
        index, parameters = bucket.index(), bucket.parameters()
        if index == 0 and self._pending:
            self._pending, self._averager = [], None  # the last backward pass ended by an error
        is_other = index < len(self._parameters) and not _are_same(self._parameters[index], parameters)
        if is_other and index > 0 and self._averager is not None:
            self._averager.finish()
            self._parameters[0] = []  # the next step begins with another averager, for all buckets
        if self._averager is None or is_other:
            self._averager = self._new_averager()
        elif index == 0:
            self._averager.set_weight(self.weight)
        if is_other or index == len(self._parameters):
            self._parameters[index:] = [parameters]
        return self._averager


def _are_same(some: List[torch.Tensor], others: List[torch.Tensor]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others))


@untraced
def wire_average_hook(state: WireAverage, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The ranks' gradients as an average that crosses the network as a Wire says, with its error feedback.
    `model.register_comm_hook(WireAverage("int8"), wire_average_hook)`"""
    averager, gradients = state._averager_for(bucket), bucket.buffer()
    average: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    for gradient in gradients.split([parameter.numel() for parameter in bucket.parameters()]):
        averager.add(gradient)
    state._pending.append((average, gradients))
    if bucket.is_last():
        # The backward pass has computed all by now, so nothing is left beside which to wait.
        averager.finish()
        for future, values in state._pending:
            future.set_result(values)
        state._pending = []
    return average
