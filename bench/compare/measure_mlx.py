"""MLX's own ring over TCP in bench/compare. Reads what MLX does: MLX_RANK, MLX_HOSTFILE. Its ring has no reduce_scatter."""

import importlib.metadata

import mlx.core as mx
import numpy
from measure import Request, contribution, measure, sum_of_contributions


class Library:
    name = "mlx"
    version = importlib.metadata.version("mlx")

    def __init__(self):
        self.group = mx.distributed.init(strict=True, backend="ring")
        self.rank = self.group.rank()
        self.ranks = self.group.size()

    def barrier(self):
        mx.eval(mx.distributed.all_sum(mx.ones(1), group=self.group))

    def largest(self, value):
        most = mx.distributed.all_max(mx.array([value], dtype=mx.float32), group=self.group)
        return most.item()


def main():
    mx.set_default_device(mx.cpu)
    request = Request()
    library = Library()
    for size in request.sizes:
        count = size // 4
        part = count // library.ranks
        if request.operation == "all_reduce":
            values = mx.array(contribution(library.rank, count))
            total = numpy.array(mx.distributed.all_sum(values, group=library.group))
            right = numpy.array_equal(total, sum_of_contributions(library.ranks, count))
            measure(library, request, size, right, lambda: mx.eval(mx.distributed.all_sum(values, group=library.group)))
        elif request.operation == "all_gather" and part:
            values = mx.array(contribution(library.rank, part))
            whole = numpy.array(mx.distributed.all_gather(values, group=library.group))
            right = all(
                numpy.array_equal(whole[part * rank : part * (rank + 1)], contribution(rank, part)) for rank in range(library.ranks)
            )
            measure(library, request, size, right, lambda: mx.eval(mx.distributed.all_gather(values, group=library.group)))


main()
