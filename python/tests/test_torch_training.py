"""Trainings of torch's own kinds over Ringlet: all ranks end with the same parameters."""

import contextlib
import faulthandler
import hashlib
import tempfile

import pytest
from ranks import entry_points_work, on_torch_ranks

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


def model(width=64):
    torch.manual_seed(0)
    layers = torch.nn
    return layers.Sequential(layers.Linear(32, width), layers.GELU(), layers.Linear(width, width), layers.GELU(), layers.Linear(width, 8))


def samples(step, rank, count=16):
    random = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(count, 32, generator=random), torch.randn(count, 8, generator=random)


def train(net, steps=5, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(net.parameters(), 1e-2)
    for step in range(steps):
        inputs, targets = samples(step, dist.get_rank())
        (net(inputs) - targets).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def state_of(parameters):
    """Their bits as one text, which is the same on all ranks."""
    digest = hashlib.sha256()
    for parameter in parameters:
        whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        # A copy: FSDP frees the memory itself, which it cannot once NumPy has seen it.
        digest.update(whole.detach().clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes())
    mine = digest.hexdigest()
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, mine)
    assert set(everybody) == {mine}, everybody
    return mine


def alone(steps=5, kind=torch.optim.AdamW):
    """The same training by one process, which has the samples of all."""
    net, size = model(), dist.get_world_size()
    optimizer = kind(net.parameters(), 1e-2)
    for step in range(steps):
        parts = [samples(step, rank) for rank in range(size)]
        inputs, targets = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
        (net(inputs) - targets).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def close(net, other):
    for mine, wanted in zip(net.parameters(), other.parameters()):
        whole = mine.full_tensor() if hasattr(mine, "full_tensor") else mine
        torch.testing.assert_close(whole.detach(), wanted.detach(), rtol=1e-3, atol=1e-4)


@on_torch_ranks(2)
def test_few_averages():
    """In a process group, on a module's own parameters. After single steps of SGD a plain mean of the parameters is that of the gradients."""
    import ringlet

    for inner_steps, wire in ((1, None), (3, "bf16")):
        net = model()
        optimizer = (torch.optim.SGD if inner_steps == 1 else torch.optim.AdamW)(net.parameters(), 1e-2)

        def inner(step):
            inputs, targets = samples(step.number, step.rank)
            (net(inputs) - targets).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            return len(inputs)

        trainer = ringlet.OuterTrainer(
            dist.group.WORLD.ringlet, dict(net.named_parameters()), inner_steps=inner_steps, learning_rate=1, momentum=0, wire=wire
        )
        trainer.run(inner, steps=6)
        state_of(net.parameters())
        if inner_steps == 1:
            close(net, alone(6, torch.optim.SGD))


@on_torch_ranks(2, 3)
def test_data_parallel():
    from torch.nn.parallel import DistributedDataParallel

    wanted = alone()
    states = set()
    for options in ({}, {"bucket_cap_mb": 0.01, "gradient_as_bucket_view": True}, {"static_graph": True}):
        net = train(DistributedDataParallel(model(), **options))
        close(net, wanted)
        states.add(state_of(net.parameters()))
    # Parameters of 27 KB are added in rank order, whatever the buckets.
    assert len(states) == 1


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

    for profiled in (False, True):
        with torch.profiler.profile() if profiled else contextlib.nullcontext():
            for _ in range(10):
                futures = [dist.all_reduce(torch.ones(elements), async_op=True).get_future().then(again) for _ in range(3)]
                for total in torch.futures.collect_all(futures).wait():
                    assert (total.wait() == 4).all()
    faulthandler.cancel_dump_traceback_later()


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
    state.weight = 0.0
    with pytest.raises(RuntimeError, match="must be positive"):
        (net(inputs) - targets).square().mean().backward()


@on_torch_ranks(3)
def test_uneven_inputs():
    from torch.nn.parallel import DistributedDataParallel

    net = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), 1e-2)
    with net.join():
        for step in range(2 + dist.get_rank()):
            inputs, targets = samples(step, dist.get_rank())
            (net(inputs) - targets).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    state_of(net.parameters())


@on_torch_ranks(2, 4)
def test_sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    size, wanted = dist.get_world_size(), alone()
    first = train(FullyShardedDataParallel(model(), device_id=torch.device("cpu"), use_orig_params=True))
    with FullyShardedDataParallel.summon_full_params(first):
        close(first, wanted)
        states = {state_of(first.parameters())}
    meshes = [init_device_mesh("cpu", (size,))]
    if size == 4:
        meshes.append(init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")))
    for mesh in meshes:
        net = model()
        for layer in net:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        close(train(fully_shard(net, mesh=mesh)), wanted)
        states.add(state_of(net.parameters()))
    if size == 2:
        assert len(states) == 1


@on_torch_ranks(4, environment={"RINGLET_ORDER": "rank"})
def test_one_sum_whatever_the_division():
    """In rank order the bits depend neither on the buckets nor on who owns which rows, for 27 KB of parameters and for 6.6 MB."""
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch.nn.parallel import DistributedDataParallel

    for width in (64, 1264):
        states = {}
        for megabytes in (25, 1, 0.01):
            net = train(DistributedDataParallel(model(width), bucket_cap_mb=megabytes), steps=3)
            states[f"DDP, buckets of {megabytes} MB"] = state_of(net.parameters())
        net = train(FullyShardedDataParallel(model(width), device_id=torch.device("cpu"), use_orig_params=True), steps=3)
        with FullyShardedDataParallel.summon_full_params(net):
            states["FSDP"] = state_of(net.parameters())
        net = model(width)
        for layer in net:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer)
        states["FSDP2"] = state_of(train(fully_shard(net), steps=3).parameters())
        assert len(set(states.values())) == 1, (width, states)


@on_torch_ranks(2)
def test_tensor_parallel_and_zero():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.nn.parallel import DistributedDataParallel

    mesh = init_device_mesh("cpu", (2,))
    net = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer, whole = torch.optim.SGD(net.parameters(), 1e-2), model()
    of_whole = torch.optim.SGD(whole.parameters(), 1e-2)
    for step in range(3):
        inputs, targets = samples(step, 0)
        for each, its in ((net, optimizer), (whole, of_whole)):
            (each(inputs) - targets).square().mean().backward()
            its.step()
            its.zero_grad()
    close(net, whole)
    net = DistributedDataParallel(model())
    train(net, optimizer=ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-2))
    close(net, alone())
    state_of(net.parameters())


@on_torch_ranks(2)
def test_pipeline():
    if not entry_points_work():
        return  # the stages of torch 2.9 begin by a message whose ends have different dtypes, over gloo, too
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank = dist.get_rank()
    whole = model()
    part = whole[:2] if rank == 0 else whole[2:]
    stage = PipelineStage(part, rank, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda output, target: (output - target).square().mean())
    inputs, targets = samples(0, 0)
    if rank == 0:
        schedule.step(inputs)
    else:
        losses = []
        schedule.step(target=targets, losses=losses)
    reference = model()
    (reference(inputs) - targets).square().mean().backward()
    mine = reference[:2] if rank == 0 else reference[2:]
    for got, wanted in zip(part.parameters(), mine.parameters()):
        torch.testing.assert_close(got.grad, wanted.grad, rtol=1e-4, atol=1e-6)


@on_torch_ranks(2)
def test_checkpoints():
    import torch.distributed.checkpoint as checkpoints
    from torch.distributed.checkpoint.state_dict import get_model_state_dict
    from torch.distributed.fsdp import fully_shard

    place = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(place)
    net = fully_shard(train(model(), 1))
    before = state_of(net.parameters())
    state = get_model_state_dict(net)
    checkpoints.save(state, checkpoint_id=place[0])
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    checkpoints.load(state, checkpoint_id=place[0])
    assert state_of(net.parameters()) == before
