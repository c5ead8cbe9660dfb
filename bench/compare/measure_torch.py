"""PyTorch's own Gloo in bench/compare. Reads what torch.distributed does: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""

import numpy
import torch
import torch.distributed as dist
from measure import Request, contribution, measure, sum_of_contributions


class Library:
    name = "torch"
    version = torch.__version__

    def __init__(self):
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.ranks = dist.get_world_size()

    def barrier(self):
        dist.barrier()

    def largest(self, value):
        values = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(values, op=dist.ReduceOp.MAX)
        return float(values)


def main():
    torch.set_num_threads(1)
    request = Request()
    library = Library()
    for size in request.sizes:
        count = size // 4
        part = count // library.ranks
        if request.operation == "all_reduce":
            values = torch.from_numpy(contribution(library.rank, count))
            dist.all_reduce(values)
            right = numpy.array_equal(values.numpy(), sum_of_contributions(library.ranks, count))
            values.zero_()
            measure(library, request, size, right, lambda: dist.all_reduce(values))
        elif request.operation == "all_gather" and part:
            part_of_rank = torch.from_numpy(contribution(library.rank, part))
            whole = torch.zeros(part * library.ranks)
            dist.all_gather_into_tensor(whole, part_of_rank)
            right = all(
                numpy.array_equal(whole[part * rank : part * (rank + 1)].numpy(), contribution(rank, part)) for rank in range(library.ranks)
            )
            measure(library, request, size, right, lambda: dist.all_gather_into_tensor(whole, part_of_rank))
        elif request.operation == "reduce_scatter" and part:
            whole = torch.from_numpy(contribution(library.rank, part * library.ranks))
            part_of_rank = torch.zeros(part)
            dist.reduce_scatter_tensor(part_of_rank, whole)
            expected = sum_of_contributions(library.ranks, part * library.ranks)[part * library.rank : part * (library.rank + 1)]
            right = numpy.array_equal(part_of_rank.numpy(), expected)
            measure(library, request, size, right, lambda: dist.reduce_scatter_tensor(part_of_rank, whole))
    dist.barrier()
    dist.destroy_process_group()


main()
