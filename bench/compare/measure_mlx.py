"""MLX's own ring over TCP in bench/compare. Reads what MLX does: MLX_RANK, MLX_HOSTFILE. Its ring has no reduce_scatter."""

import importlib.metadata

import mlx.core as mx
import numpy
from measure import Request, run


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
        return mx.distributed.all_max(mx.array([value], dtype=mx.float32), group=self.group).item()

    def all_reduce(self, given):
        return self.evaluated(mx.distributed.all_sum, mx.array(given))

    def all_gather(self, given):
        return self.evaluated(mx.distributed.all_gather, mx.array(given))

    def evaluated(self, operation, values):
        results = [values]

        def call():
            results[0] = operation(values, group=self.group)
            mx.eval(results[0])

        return call, lambda: numpy.array(results[0])


mx.set_default_device(mx.cpu)
run(Library(), Request())
