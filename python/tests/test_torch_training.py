"""Trainings of torch's own kinds over Ringlet: all ranks end with the same parameters."""

import tempfile

import pytest
from ranks import entry_points_work, on_torch_ranks
from torch_nets import alone, close, model, samples, state_of, train

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


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


@on_torch_ranks(3)
def test_averages_without_a_wrapper():
    """Ranks have 4, 8 and 12 samples. Rank 1 alone uses one layer, and nobody another one."""
    import ringlet
    from ringlet.torch import average_gradients

    def made():
        return torch.nn.ModuleDict({"all": model(), "one": torch.nn.Linear(8, 8), "none": torch.nn.Linear(8, 8)})

    def loss_of(net, each):
        inputs, targets = samples(0, each, 4 * (each + 1))
        outputs = net["all"](inputs)
        return ((net["one"](outputs) if each == 1 else outputs) - targets).square().mean()

    rank, size = dist.get_rank(), dist.get_world_size()
    pair = dist.new_group([0, 1])
    feedback = ringlet.Wire("int8", feedback=True, least_elements=0)
    for wire, weighted, group in ((None, False, None), (None, True, dist.group.WORLD.ringlet), (feedback, True, None), (None, False, pair)):
        if group is pair and rank == 2:
            continue
        ranks = range(2 if group is pair else size)
        net, whole = made(), made()
        whole.load_state_dict(net.state_dict())
        loss_of(net, rank).backward()
        average_gradients(net, group, weight=4.0 * (rank + 1) if weighted else None, wire=wire)
        for each in ranks:
            share = (each + 1) / sum(other + 1 for other in ranks) if weighted else 1 / len(ranks)
            (loss_of(whole, each) * share).backward()
        for (name, mine), wanted in zip(net.named_parameters(), whole.parameters()):
            if name.startswith("none"):
                assert mine.grad is None
                continue
            bound = 0 if wire is None else wanted.grad.abs().max().item() / 16
            torch.testing.assert_close(mine.grad, wanted.grad, rtol=1e-4, atol=1e-6 + bound)
        if group is not pair:
            state_of([parameter.grad for parameter in net.parameters() if parameter.grad is not None])
    with pytest.raises(ringlet.InvalidArgument, match="communication_type is 'x'"):
        average_gradients(net, pair, wire="x") if rank < 2 else average_gradients(net, ringlet.Group(), wire="x")


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
