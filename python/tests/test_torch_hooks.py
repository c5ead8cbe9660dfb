"""Communication hooks of DDP's over Ringlet, and what call-backs of futures may do."""

import faulthandler
import functools

import pytest
from ranks import on_torch_ranks
from torch_nets import alone, close, model, samples, state_of, train

import ringlet

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


@on_torch_ranks(2)
def test_hooks():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    for hook in (default_hooks.bf16_compress_hook, default_hooks.fp16_compress_hook, default_hooks.allreduce_hook):
        net = DistributedDataParallel(model())
        net.register_comm_hook(None, hook)
        state_of(train(net).parameters())

    def whole_numbers(group: dist.ProcessGroup, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        scaled = (bucket.buffer() * 2**20).round().to(torch.int32)
        future = dist.all_reduce(scaled, group=group, async_op=True).get_future()
        return future.then(lambda done: done.value()[0].to(torch.float32) / 2**20 / dist.get_world_size())

    net = DistributedDataParallel(model())
    net.register_comm_hook(dist.group.WORLD, whole_numbers)
    state_of(train(net).parameters())


@on_torch_ranks(2, 3)
def test_hooks_whose_call_backs_wait():
    """Of full rank what PowerSGD approximates of each layer is the mean itself."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
    from torch.nn.parallel import DistributedDataParallel

    faulthandler.dump_traceback_later(90, exit=True)
    # The batched hook gives a matrix where torch (2.15) checks for a batch of them.
    of_batches = powerSGD_hook._orthogonalize
    powerSGD_hook._orthogonalize = lambda matrices, epsilon=0: of_batches(matrices if matrices.dim() == 3 else matrices[None], epsilon)
    wanted = alone(8, torch.optim.SGD)
    for hook, rank in ((powerSGD_hook.powerSGD_hook, 512), (powerSGD_hook.batched_powerSGD_hook, 2)):
        for megabytes in (25, 0.01):
            state = powerSGD_hook.PowerSGDState(None, rank, start_powerSGD_iter=2, min_compression_rate=0)
            net = DistributedDataParallel(model(), bucket_cap_mb=megabytes)
            net.register_comm_hook(state, hook)
            train(net, 8, torch.optim.SGD(net.parameters(), 1e-2))
            state_of(net.parameters())
            if rank == 512:
                close(net, wanted)
    faulthandler.cancel_dump_traceback_later()


@on_torch_ranks(2)
def test_call_backs_may_wait():
    faulthandler.dump_traceback_later(90, exit=True)
    group, elements = dist.new_group(), 1000

    def again(done):
        return dist.all_reduce(done.value()[0], group=group, async_op=True).get_future().wait()[0]

    for _ in range(20):
        futures = [dist.all_reduce(torch.ones(elements), async_op=True).get_future().then(again) for _ in range(3)]
        for total in torch.futures.collect_all(futures).wait():
            assert (total.wait() == 4).all()
    faulthandler.cancel_dump_traceback_later()


@on_torch_ranks(2)
def test_a_work_that_is_over_has_a_future_that_is():
    mine = torch.ones(3)
    for turn in range(300):
        work = dist.all_reduce(mine, async_op=True)
        future = work.get_future() if turn % 2 == 0 else None
        if turn % 3 == 0:
            while not work.is_completed():
                pass
        else:
            work.wait()
        future = future or work.get_future()
        assert future.done(), turn
        assert torch.equal(future.value()[0], torch.full((3,), 2.0))
        mine.fill_(1)
        dist.barrier()


@on_torch_ranks(3)
def test_averages_weighted_by_samples():
    from torch.nn.parallel import DistributedDataParallel

    from ringlet.torch import WeightedAverage, weighted_average_hook

    rank, size = dist.get_rank(), dist.get_world_size()
    state = WeightedAverage()
    net = DistributedDataParallel(model(), bucket_cap_mb=0.01)
    net.register_comm_hook(state, weighted_average_hook)
    whole = model()
    for step in range(3):
        # Ranks have 4, 8 and 12 samples of a batch, and the loss is the mean over all of it.
        parts = [samples(step, each, 4 * (each + 1)) for each in range(size)]
        inputs, targets = parts[rank]
        state.weight = len(inputs)
        (net(inputs) - targets).square().mean().backward()
        inputs, targets = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
        (whole(inputs) - targets).square().mean().backward()
        for mine, wanted in zip(net.parameters(), whole.parameters()):
            torch.testing.assert_close(mine.grad, wanted.grad)
        net.zero_grad()
        whole.zero_grad()
    # A rank without samples has the mean over none of them.
    parts = [samples(4, each, 4 * each) for each in range(size)]
    state.weight = len(parts[rank][0])
    (net(parts[rank][0]) - parts[rank][1]).square().mean().backward()
    inputs, targets = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
    (whole(inputs) - targets).square().mean().backward()
    for mine, wanted in zip(net.parameters(), whole.parameters()):
        torch.testing.assert_close(mine.grad, wanted.grad)
    state.weight = 1e308
    with pytest.raises(RuntimeError, match="weights add up to inf; that must be a finite number"):
        (net(parts[rank][0]) - parts[rank][1]).square().mean().backward()
    state.weight = 0.0
    with pytest.raises(RuntimeError, match="weights add up to 0.0; that must be a finite number above 0"):
        (net(inputs) - targets).square().mean().backward()


def test_weights_are_checked_where_they_are_set():
    from ringlet.torch import WeightedAverage, WireAverage

    for state, make in ((WeightedAverage(), WeightedAverage), (WireAverage("int8"), functools.partial(WireAverage, "int8"))):
        before = state.weight
        for wrong in (-1, float("inf"), float("nan"), 10**400, torch.tensor(-2.0)):
            with pytest.raises(ringlet.InvalidArgument, match="weight is .*; it must be a finite number that is not negative"):
                state.weight = wrong
            with pytest.raises(ringlet.InvalidArgument, match="weight is .*; it must be a finite number that is not negative"):
                make(weight=wrong)
        for wrong in ("3", [1], torch.ones(2)):
            with pytest.raises(TypeError, match="weight is .*; it is a number"):
                state.weight = wrong
        assert state.weight == before
        for right in (0, 7, torch.tensor(2.5)):
            state.weight = right
            assert state.weight == float(right)
    with pytest.raises(TypeError, match="weight is None; it is a number"):
        WeightedAverage(weight=None)
    assert WireAverage("int8").weight is None


def test_averages_need_a_group_of_ringlet():
    from ringlet.torch import average_gradients

    net = torch.nn.Linear(2, 2)
    with pytest.raises(ringlet.InvalidArgument, match="there is no process group yet"):
        average_gradients(net)
    with pytest.raises(ringlet.InvalidArgument, match="the group is 5; it is one of torch's process groups"):
        average_gradients(net, 5)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ringlet.InvalidArgument, match="back end is gloo; it has to be ringlet"):
            average_gradients(net)
    finally:
        dist.destroy_process_group()


def test_averages_of_sparse_gradients_are_refused():
    from ringlet.torch import average_gradients

    net = torch.nn.Embedding(4, 2, sparse=True)
    net(torch.tensor([1])).sum().backward()
    with pytest.raises(ringlet.InvalidArgument, match="gradient of 'weight' is torch.sparse_coo"):
        average_gradients(net, ringlet.Group())


@on_torch_ranks(2, 3)
def test_averages_over_a_wire():
    """Their error is of the wire's, and with feedback it does not add up: the gradients of all steps are the same here."""
    from torch.nn.parallel import DistributedDataParallel

    import ringlet
    from ringlet.torch import WireAverage, wire_average_hook

    rank, size, steps = dist.get_rank(), dist.get_world_size(), 24
    wires = [(name, bound) for name, bound in (("bf16", 2**-6), ("f16", 2**-9))]
    for name, bound in (("int8", 2**-5), ("int4", 0.5)):
        wires += [(ringlet.Wire(name, feedback, least_elements=0), bound) for feedback in (False, True)]
    for wire, bound in wires:
        for weight in (None, rank + 1.0):
            inputs, targets = samples(0, rank)
            own = model()
            (own(inputs) - targets).square().mean().backward()
            gradients = {name: parameter.grad for name, parameter in own.named_parameters()}
            group = dist.group.WORLD.ringlet
            exact = ringlet.average_gradients(gradients, group, weight=weight)
            if getattr(wire, "feedback", False):
                wanted = None
            else:
                wanted = ringlet.average_gradients(gradients, group, communication_type=wire, weight=weight)
            state = WireAverage(wire, weight=weight)
            net = DistributedDataParallel(model(), bucket_cap_mb=0.01)
            net.register_comm_hook(state, wire_average_hook)
            sums = {name: torch.zeros_like(gradient) for name, gradient in gradients.items()}
            errors = []
            for step in range(steps):
                net.zero_grad()
                (net(inputs) - targets).square().mean().backward()
                state_of([parameter.grad for parameter in net.parameters()])
                for name, parameter in net.module.named_parameters():
                    largest = exact[name].abs().max()
                    assert (parameter.grad - exact[name]).abs().max() <= bound * 4 * largest
                    assert wanted is None or torch.equal(parameter.grad, wanted[name]), (wire, weight, name)
                    sums[name] += parameter.grad
                errors.append(max((sums[name] / (step + 1) - exact[name]).abs().max() for name in exact))
            if wanted is None:
                assert errors[-1] < errors[0] / 3, (wire, weight, errors)
    with pytest.raises(ringlet.InvalidArgument, match="wire is 'x'"):
        WireAverage("x")


@on_torch_ranks(2)
def test_residuals_stay_with_their_parameters():
    """DDP forms its buckets anew: what rounding has left of one parameter is never added to another."""
    import ringlet
    from ringlet.torch import WireAverage, wire_average_hook

    class Bucket:
        def __init__(self, number, of, last):
            self.number, self.of, self.last = number, of, last

        def index(self):
            return self.number

        def is_last(self):
            return self.last

        def parameters(self):
            return self.of

        def buffer(self):
            return torch.cat(self.of)

    def step(*buckets):
        futures = [wire_average_hook(state, Bucket(i, of, i == len(buckets) - 1)) for i, of in enumerate(buckets)]
        return [future.wait() for future in futures]

    state = WireAverage(ringlet.Wire("int4", feedback=True, least_elements=0))
    rough, other, zeros = torch.linspace(0, 1, 64), torch.linspace(1, 3, 64), torch.zeros(64)
    for buckets in ([[rough], [other]], [[rough], [zeros]], [[zeros], [rough]], [[zeros, rough]], [[rough], [other], [zeros]], [[zeros]]):
        for _ in range(2):
            for average, of in zip(step(*buckets), buckets):
                for values, parameter in zip(average.split(64), of):
                    torch.testing.assert_close(values, parameter, rtol=0, atol=0 if parameter is zeros else 0.4)
    # Nor where another model's parameters take the place of the first one's in memory.
    for values in [rough, zeros] * 5:
        (average,) = step([values.clone()])
        torch.testing.assert_close(average, values, rtol=0, atol=0 if values is zeros else 0.4)
    state.weight = 0.0
    with pytest.raises(ringlet.InvalidArgument, match="weights of all ranks are 0"):
        step([rough])
    state.weight = 2.0
    assert (step([zeros])[0] == 0).all()
