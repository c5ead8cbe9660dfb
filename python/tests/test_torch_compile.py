"""torch.compile over Ringlet's process groups: what is compiled computes what is not."""

import shutil

import pytest
from ranks import on_torch_ranks, run_program
from torch_nets import model, samples

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


# Inductor writes C++.
WITH_INDUCTOR = ["eager", "inductor"] if shutil.which("g++") else ["eager"]


def test_nothing_imports_the_compiler():
    """It takes seconds."""
    run_program(
        """if True:
        import sys
        import torch.distributed as dist
        import torch
        import ringlet.torch
        dist.init_process_group("ringlet", store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(torch.ones(3))
        assert "torch._dynamo" not in sys.modules
        dist.destroy_process_group()
        """
    )


def test_another_torch_whose_compiler_has_other_insides():
    run_program(
        """if True:
        from torch._C._dynamo import eval_frame
        import torch._dynamo
        kept = eval_frame.set_code_exec_strategy
        del eval_frame.set_code_exec_strategy
        import torch
        import torch.distributed as dist
        import ringlet.torch
        eval_frame.set_code_exec_strategy = kept
        assert not ringlet.torch.tracing._CAN_MARK
        dist.init_process_group("ringlet", store=dist.HashStore(), rank=0, world_size=1)

        @torch.compile(backend="eager")
        def step(x):
            y = x * 2
            dist.broadcast(y, 0)
            return y + 1

        assert step(torch.ones(3)).tolist() == [3, 3, 3]
        assert dist.all_reduce(torch.ones(3), async_op=True).wait()
        dist.destroy_process_group()
        """
    )


def collectives():
    """Functions of a tensor, each of which has a collective between two computations."""
    rank, size = dist.get_rank(), dist.get_world_size()

    def empty(like):
        return [torch.empty_like(like) for _ in range(size)]

    def broadcast(x):
        y = x * 2
        dist.broadcast(y, 0)
        return y + 1

    def reduce(x):
        y = x * 2
        dist.reduce(y, 0)
        return y + 1

    def gather(x):
        outputs = empty(x) if rank == 0 else None
        dist.gather(x * 2, outputs, 0)
        return torch.stack(outputs) + 1 if rank == 0 else x + 1

    def scatter(x):
        y = torch.empty_like(x)
        dist.scatter(y, [x * each for each in range(size)] if rank == 0 else None, 0)
        return y + 1

    def all_reduce(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    def all_reduce_async(x):
        y = x * 2
        work = dist.all_reduce(y, async_op=True)
        z = x * 3
        work.wait()
        return y + z

    def futures(x):
        y = x * 2
        return dist.all_reduce(y, async_op=True).get_future().wait()[0] + 1

    def all_gather(x):
        outputs = empty(x)
        dist.all_gather(outputs, x * 2)
        return torch.stack(outputs) + 1

    def reduce_scatter(x):
        y = torch.empty_like(x)
        dist.reduce_scatter(y, [x * each for each in range(size)])
        return y + 1

    def all_to_all(x):
        outputs = empty(x)
        dist.all_to_all(outputs, [x * each for each in range(size)])
        return torch.stack(outputs) + 1

    def send(x):
        y = x * 2
        if rank == 0:
            dist.send(y, size - 1)
        elif rank == size - 1:
            dist.recv(y, 0)
        return y + 1

    def exchange(x):
        y = torch.empty_like(x)
        to, of = dist.P2POp(dist.isend, x * 2, (rank + 1) % size), dist.P2POp(dist.irecv, y, (rank - 1) % size)
        for work in dist.batch_isend_irecv([to, of]):
            work.wait()
        return y + 1

    def barrier(x):
        y = x * 2
        dist.barrier()
        return y + 1

    return [value for name, value in locals().items() if name not in ("rank", "size", "empty")]


@on_torch_ranks(2)
def test_collectives():
    for function in collectives():
        x = torch.arange(4.0) + dist.get_rank()
        wanted = function(x)
        for compiler in WITH_INDUCTOR if function.__name__ in ("broadcast", "all_reduce_async") else ["eager"]:
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=compiler)
            for _ in range(2):
                assert torch.equal(compiled(x), wanted), (function.__name__, compiler)


@on_torch_ranks(2)
def test_training():
    import ringlet
    from ringlet.torch import WeightedAverage, WireAverage, average_gradients, weighted_average_hook, wire_average_hook
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    def gradients_of(net, compiled=lambda function: function, after=lambda net: None):
        """Of three steps of a training."""
        forward, after, gradients = compiled(net), compiled(after), []
        for number in range(3):
            net.zero_grad()
            inputs, targets = samples(number, dist.get_rank())
            (forward(inputs) - targets).square().mean().backward()
            after(net)
            gradients += [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad.clone() for p in net.parameters()]
        return gradients

    def ddp(hook=None, state=None, **options):
        def made():
            net = DistributedDataParallel(model(600), bucket_cap_mb=1, **options)
            if hook is not None:
                net.register_comm_hook(state(), hook)
            return net

        return made

    def sharded():
        net = model()
        for layer in net:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        return fully_shard(net)

    weight = dist.get_rank() + 1.0
    trainings = [
        (ddp(), {}),
        (ddp(static_graph=True), {}),
        (ddp(gradient_as_bucket_view=True), {}),
        (ddp(weighted_average_hook, lambda: WeightedAverage(weight=weight)), {}),
        (ddp(wire_average_hook, lambda: WireAverage(ringlet.Wire("int8", feedback=True))), {}),
        (sharded, {}),
        (model, {"after": lambda net: average_gradients(net, weight=weight)}),
    ]
    for number, (make, options) in enumerate(trainings):
        wanted = gradients_of(make(), **options)
        for compiler in WITH_INDUCTOR if number == 0 else ["eager", "aot_eager"]:
            torch._dynamo.reset()
            got = gradients_of(make(), lambda function: torch.compile(function, backend=compiler), **options)
            for mine, other in zip(got, wanted):
                torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
