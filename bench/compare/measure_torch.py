"""PyTorch's own Gloo in bench/compare. Reads what torch.distributed does: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""

import torch
import torch.distributed as dist
from measure import Request, run


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

    def all_reduce(self, given):
        values = torch.from_numpy(given)  # the same memory
        return lambda: dist.all_reduce(values), lambda: given

    def all_gather(self, given):
        part, whole = torch.from_numpy(given), torch.zeros(len(given) * self.ranks)
        return lambda: dist.all_gather_into_tensor(whole, part), whole.numpy

    def reduce_scatter(self, given):
        whole, part = torch.from_numpy(given), torch.zeros(len(given) // self.ranks)
        return lambda: dist.reduce_scatter_tensor(part, whole), part.numpy


torch.set_num_threads(1)
run(Library(), Request())
dist.barrier()
dist.destroy_process_group()
