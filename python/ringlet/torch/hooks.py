"""Communication hooks for DistributedDataParallel."""

from typing import Any, Optional

import torch
import torch.distributed as dist


class WeightedAverage:
    """The state of weighted_average_hook: how much this rank's gradients count. Set `weight` before each backward pass, say to the number of
    samples of which the loss is the mean; the ranks' weights need not be the same, but not all may be 0."""

    def __init__(self, process_group: Optional[dist.ProcessGroup] = None, weight: float = 1.0) -> None:
        self.process_group = process_group
        self.weight = weight
        self._total: Any = None


def weighted_average_hook(state: WeightedAverage, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The ranks' gradients as an average weighted by WeightedAverage.weight: the gradient of the mean over all samples, also where ranks have
    different numbers of them. `model.register_comm_hook(WeightedAverage(), weighted_average_hook)`"""
    group = state.process_group if state.process_group is not None else dist.group.WORLD
    gradients = bucket.buffer()
    if bucket.index() == 0:
        # Once a step; the buckets come in this order on all ranks.
        total = torch.tensor([state.weight], dtype=torch.float64)
        state._total = dist.all_reduce(total, group=group, async_op=True).get_future()
    sums = dist.all_reduce(gradients.mul_(state.weight), group=group, async_op=True).get_future()

    def divided(both: torch.futures.Future) -> torch.Tensor:
        total, values = (future.value()[0] for future in both.value())
        if not total.item() > 0:
            raise ValueError(f"the ranks' weights add up to {total.item()}; they must be positive")
        return values.div_(total.item())

    return torch.futures.collect_all([state._total, sums]).then(divided)
