"""torch.distributed's collectives over Ringlet, against what torch itself computes of all ranks' tensors."""

import datetime
import functools
import inspect

import pytest
from ranks import on_torch_ranks

import ringlet
from ringlet import _ringlet

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

COMPUTED = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
MOVED = [*COMPUTED, torch.bool, torch.uint16, torch.complex64, torch.complex128, torch.float8_e4m3fn]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (0, 4), (1001,)]


def of_ranks(dtype, shape, seed=0):
    """Small whole numbers, so that every order of additions gives the same."""
    made = []
    for rank in range(dist.get_world_size()):
        values = torch.randint(0, 4, shape, generator=torch.Generator().manual_seed(1000 * seed + rank))
        made.append(values.to(torch.float32).to(dtype) if dtype == torch.float8_e4m3fn else values.to(dtype))
    return made


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist()


def same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got.dtype, got.shape, wanted.dtype, wanted.shape)
    assert bits(got) == bits(wanted), (got, wanted)


def layouts(tensor):
    """The same values in other memory: contiguous, transposed, with gaps."""
    yield tensor.clone()
    if tensor.dim() == 2:
        yield tensor.t().contiguous().t()
        spread = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
        spread[..., 0].copy_(tensor)
        yield spread[..., 0]


@on_torch_ranks(1, 2, 3)
def test_reductions():
    rank, size = dist.get_rank(), dist.get_world_size()
    kinds = {
        dist.ReduceOp.SUM: sum,
        dist.ReduceOp.PRODUCT: lambda tensors: torch.stack(tensors).prod(0, dtype=tensors[0].dtype),
        dist.ReduceOp.MAX: lambda tensors: torch.stack(tensors).amax(0),
        dist.ReduceOp.MIN: lambda tensors: torch.stack(tensors).amin(0),
    }
    for dtype in COMPUTED:
        for shape in SHAPES:
            tensors = of_ranks(dtype, shape)
            for op, reference in kinds.items():
                wanted = reference(tensors).to(dtype)
                for mine in layouts(tensors[rank]):
                    dist.all_reduce(mine, op)
                    same(mine, wanted)
                mine = tensors[rank].clone()
                dist.reduce(mine, size - 1, op)
                same(mine, wanted if rank == size - 1 else tensors[rank])
            if dtype.is_floating_point:
                wanted = sum(tensors) / size
                for mine in layouts(tensors[rank]):
                    dist.all_reduce(mine, dist.ReduceOp.AVG)
                    torch.testing.assert_close(mine, wanted)
    bitwise = {"bit_and": dist.ReduceOp.BAND, "bit_or": dist.ReduceOp.BOR, "bit_xor": dist.ReduceOp.BXOR}
    for name, op in bitwise.items():
        mine = torch.tensor([rank + 1, 6, 5 + rank])
        if name not in _ringlet.reduce_ops:
            with pytest.raises(ringlet.InvalidArgument, match=name[4:].upper()):
                dist.all_reduce(mine, op)
            continue
        function = {"bit_and": torch.bitwise_and, "bit_or": torch.bitwise_or, "bit_xor": torch.bitwise_xor}[name]
        dist.all_reduce(mine, op)
        same(mine, functools.reduce(function, [torch.tensor([each + 1, 6, 5 + each]) for each in range(size)]))
    whole = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    dist.all_reduce(whole)
    assert (whole == size * torch.tensor([1 + 2j, 3 - 1j])).all()
    with pytest.raises(ringlet.InvalidArgument, match="mean"):
        dist.all_reduce(torch.ones(3, dtype=torch.int32), dist.ReduceOp.AVG)
    with pytest.raises(ringlet.InvalidArgument, match="float8"):
        dist.all_reduce(torch.ones(3).to(torch.float8_e4m3fn))


@on_torch_ranks(1, 2, 3)
def test_reductions_into_parts():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.int64, torch.float32, torch.bfloat16):
        wholes = of_ranks(dtype, (2 * size, 3))
        output = torch.empty(2, 3, dtype=dtype)
        dist.reduce_scatter_tensor(output, wholes[rank].clone())
        same(output, sum(wholes)[2 * rank : 2 * rank + 2])
        if dtype.is_floating_point:
            dist.reduce_scatter_tensor(output, wholes[rank].clone(), dist.ReduceOp.AVG)
            torch.testing.assert_close(output, (sum(wholes) / size)[2 * rank : 2 * rank + 2])
        dist.reduce_scatter(output, [part.clone() for part in wholes[rank].split(2)])
        same(output, sum(wholes)[2 * rank : 2 * rank + 2])
        dist.reduce_scatter_tensor(output, wholes[rank].clone(), dist.ReduceOp.PRODUCT)
        same(output, torch.stack(wholes).prod(0, dtype=dtype)[2 * rank : 2 * rank + 2])
        # The parts of the ranks differ, and the output is a part of the input.
        sizes = [index + 1 for index in range(size)]
        uneven = of_ranks(dtype, (sum(sizes),), 1)
        output = torch.empty(sizes[rank], dtype=dtype)
        dist.reduce_scatter(output, list(uneven[rank].split(sizes)))
        same(output, sum(uneven).split(sizes)[rank])
        whole = wholes[rank].clone()
        dist.reduce_scatter_tensor(whole[2 * rank : 2 * rank + 2], whole)
        same(whole[2 * rank : 2 * rank + 2], sum(wholes)[2 * rank : 2 * rank + 2])


@on_torch_ranks(1, 2, 3)
def test_what_moves():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in MOVED:
        for shape in SHAPES:
            tensors = of_ranks(dtype, shape)
            for mine in layouts(tensors[rank]):
                outputs = [torch.empty_like(tensors[0]) for _ in range(size)]
                dist.all_gather(outputs, mine)
                for got, wanted in zip(outputs, tensors):
                    same(got, wanted)
                dist.broadcast(mine, size - 1)
                same(mine, tensors[size - 1])
            outputs = [torch.empty_like(tensors[0]) for _ in range(size)] if rank == size - 1 else None
            dist.gather(tensors[rank], outputs, size - 1)
            for got, wanted in zip(outputs or [], tensors):
                same(got, wanted)
            into = torch.empty_like(tensors[0])
            dist.scatter(into, tensors if rank == 0 else None, 0)
            same(into, tensors[rank])
            if shape:
                whole = torch.empty((size * shape[0], *shape[1:]), dtype=dtype)
                dist.all_gather_into_tensor(whole, tensors[rank])
                same(
                    whole,
                    torch.cat(tensors) if dtype != torch.float8_e4m3fn else torch.cat([t.view(torch.uint8) for t in tensors]).view(dtype),
                )
    # In place, and into parts of one tensor.
    whole = torch.zeros(size, 4)
    whole[rank] = rank + 1
    dist.all_gather_into_tensor(whole, whole[rank])
    same(whole, torch.arange(1.0, size + 1)[:, None].expand(size, 4))
    whole = torch.zeros(2 * size)
    dist.all_gather(list(whole.chunk(size)), torch.full((2,), float(rank)))
    same(whole, torch.arange(float(size)).repeat_interleave(2))
    if size > 1:
        with pytest.raises(ringlet.InvalidArgument, match=rf"output tensor must be .* times world size: 5 elements for {size} of 2"):
            dist.all_gather_into_tensor(torch.empty(5), torch.ones(2))
    outputs = [torch.empty(index + 1) for index in range(size)]
    dist.all_gather(outputs, torch.full((rank + 1,), float(rank)))
    for index, output in enumerate(outputs):
        same(output, torch.full((index + 1,), float(index)))


@on_torch_ranks(1, 2, 3)
def test_all_to_all():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.int64, torch.float32, torch.float8_e4m3fn):
        tensors = [tensor.view(size, 2, 3) for tensor in of_ranks(dtype, (2 * size, 3))]
        output = torch.empty(2 * size, 3, dtype=dtype)
        dist.all_to_all_single(output, tensors[rank].reshape(-1, 3))
        for other in range(size):
            same(output.view(size, 2, 3)[other], tensors[other][rank])
        outputs = [torch.empty(2, 3, dtype=dtype) for _ in range(size)]
        dist.all_to_all(outputs, [tensors[rank][other].clone() for other in range(size)])
        for other in range(size):
            same(outputs[other], tensors[other][rank])
    # Rank s sends s + r rows to rank r.
    sends, receives = [rank + other for other in range(size)], [other + rank for other in range(size)]
    rows = torch.cat([torch.full((count, 2), 10.0 * rank + other) for other, count in enumerate(sends)])
    output = torch.empty(sum(receives), 2)
    dist.all_to_all_single(output, rows, receives, sends)
    same(output, torch.cat([torch.full((count, 2), 10.0 * other + rank) for other, count in enumerate(receives)]))
    if size > 1:
        with pytest.raises(ringlet.InvalidArgument, match="divide equally"):
            dist.all_to_all_single(torch.empty(size + 1), torch.empty(size + 1))


@on_torch_ranks(3)
def test_messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    for dtype in MOVED:
        mine, got = of_ranks(dtype, (5,))[rank], torch.empty(5, dtype=dtype)
        works = [dist.isend(mine, right, tag=3), dist.irecv(got, left, tag=3)]
        for work in works:
            work.wait()
        same(got, of_ranks(dtype, (5,))[left])
    # Tags are matched each by itself, and a receive that waits lets collectives pass.
    first, second = torch.zeros(1), torch.zeros(1)
    works = [dist.irecv(first, left, tag=1), dist.irecv(second, left, tag=2)]
    total = torch.ones(1)
    dist.all_reduce(total)
    works += [dist.isend(torch.full((1,), 2.0), right, tag=2), dist.isend(torch.full((1,), 1.0), right, tag=1)]
    for work in works:
        work.wait()
    assert (first.item(), second.item(), total.item()) == (1, 2, size)
    with pytest.raises(ringlet.InvalidArgument, match="tag"):
        dist.send(first, right, tag=5000)
    if rank == 0:
        came = {}
        for _ in range(size - 1):
            source = dist.recv(first)
            came[source] = first.item()
        assert came == {1: 1.0, 2: 2.0}
    else:
        dist.send(torch.full((1,), float(rank)), 0)
    # What follows has the same tag.
    dist.barrier()
    operations = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), right), dist.P2POp(dist.irecv, got := torch.empty(2), left)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(got, torch.full((2,), float(left)))


@on_torch_ranks(2)
def test_works():
    rank = dist.get_rank()
    mine = torch.full((3,), rank + 1.0)
    work = dist.all_reduce(mine, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
    same(work.result()[0], torch.full((3,), 3.0))
    future = dist.all_reduce(mine, async_op=True).get_future()
    assert future.then(lambda done: done.value()[0].sum().item()).wait() == 18
    outputs = [torch.empty(3), torch.empty(3)]
    gathered = dist.all_gather(outputs, torch.full((3,), float(rank)), async_op=True).get_future()
    same(torch.stack(gathered.value()[0] if gathered.done() else gathered.wait()[0]), torch.tensor([[0.0] * 3, [1.0] * 3]))
    # What is left to do is done for a work that nobody keeps, too.
    dist.all_gather(outputs, torch.full((3,), rank + 5.0), async_op=True)
    dist.barrier()
    while outputs[1][0] != 6:
        pass
    same(torch.stack(outputs), torch.tensor([[5.0] * 3, [6.0] * 3]))
    # Polling is enough: a work is over when its results are where they belong.
    for elements in (3, 300_000):
        outputs, strided = [torch.empty(elements) for _ in range(2)], torch.zeros(elements, 2)
        sent = torch.full((elements,), rank + 1.0)
        works = [dist.all_gather(outputs, sent, async_op=True), dist.irecv(strided[:, 0], 1 - rank), dist.isend(sent, 1 - rank)]
        while not all(work.is_completed() for work in works):
            pass
        same(torch.stack(outputs), torch.tensor([[1.0], [2.0]]).expand(2, elements))
        same(strided[:, 0], torch.full((elements,), 2.0 - rank))
    other, got = 1 - rank, torch.zeros(1)
    work = dist.irecv(got, other)
    assert not work.is_completed()
    with pytest.raises(RuntimeError, match="Timed out"):
        work.wait(datetime.timedelta(milliseconds=20))
    dist.barrier()
    dist.isend(torch.ones(1), other).wait()
    assert work.wait() and work._source_rank() == other
    tensors = [torch.ones(2), torch.ones(3, 2)]
    dist.all_reduce_coalesced(tensors)
    same(tensors[1], torch.full((3, 2), 2.0))
    with dist._coalescing_manager(async_ops=True) as several:
        for tensor in tensors:
            dist.all_reduce(tensor)
    several.wait()
    same(tensors[0], torch.full((2,), 4.0))
    # What cannot be written is told, too, by one of several works and by polling.
    group, one_place = dist.group.WORLD, torch.ones(1).expand(3)
    group.start_coalescing()
    for tensor in (torch.ones(2), one_place):
        group.allreduce([tensor])
    for work in (group.end_coalescing(), group.allreduce([one_place])):
        while not work.is_completed():
            pass
        assert not work.is_success()
        with pytest.raises(RuntimeError, match="single memory location"):
            work.wait()


@on_torch_ranks(3)
def test_sparse_sums():
    rank, size = dist.get_rank(), dist.get_world_size()
    for values_of, shape in ((lambda n: torch.arange(1.0, n + 1), (6,)), (lambda n: torch.ones(n, 4), (6, 4))):
        indices = torch.tensor([[rank, rank + 2][: rank + 1] if rank else []], dtype=torch.int64).reshape(1, -1)
        mine = torch.sparse_coo_tensor(indices, values_of(indices.shape[1]), shape)
        everywhere = [torch.empty(shape) for _ in range(size)]
        dist.all_gather(everywhere, mine.to_dense())
        work = dist.all_reduce(mine, async_op=True)
        dense = torch.ones(2)
        dist.all_reduce(dense)
        work.wait()
        assert mine.is_sparse and work.is_completed()
        same(mine.to_dense(), sum(everywhere))
        same(dense, torch.full((2,), 3.0))
    with pytest.raises(ringlet.InvalidArgument, match="only added"):
        dist.all_reduce(mine, dist.ReduceOp.MAX)
    with pytest.raises(ringlet.InvalidArgument, match="torch.sparse_csr; it has to be strided, or torch.sparse_coo"):
        dist.all_reduce(torch.eye(3).to_sparse_csr())


@on_torch_ranks(4)
def test_groups():
    rank = dist.get_rank()
    halves = [dist.new_group([0, 2]), dist.new_group([3, 1])]
    mine = halves[rank % 2]
    total = torch.full((2,), float(rank))
    dist.all_reduce(total, group=mine)
    same(total, torch.full((2,), 2.0 if rank % 2 == 0 else 4.0))
    assert dist.get_world_size(mine) == 2 and dist.get_rank(mine) == rank // 2
    dist.broadcast(total, 3 if rank % 2 else 2, group=mine)
    # By a call of the members alone.
    if rank in (0, 3):
        pair = dist.new_group([0, 3], use_local_synchronization=True)
        total = torch.ones(1)
        dist.all_reduce(total, group=pair)
        assert total.item() == 2
    _, groups = dist.new_subgroups(2)
    assert len(groups) == 2
    everybody = dist.new_group(timeout=datetime.timedelta(seconds=50))
    dist.barrier(everybody)
    dist.destroy_process_group(mine)
    dist.barrier()
    objects = [None] * 4
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": each, "text": "x" * each} for each in range(4)]
    chosen = [("a", 1), None] if rank == 1 else [None, None]
    dist.broadcast_object_list(chosen, 1)
    assert chosen == [("a", 1), None]
    mine = [None]
    dist.scatter_object_list(mine, [10, 11, 12, 13] if rank == 0 else None)
    assert mine == [10 + rank]
    gathered = [None] * 4 if rank == 2 else None
    dist.gather_object(rank * rank, gathered, 2)
    assert gathered == ([0, 1, 4, 9] if rank == 2 else None)
    group = dist.group.WORLD
    assert group.name() == "ringlet" and dist.get_backend() == "ringlet" and group.ringlet.size() == 4


@on_torch_ranks(4)
def test_split_groups():
    if "backend" not in inspect.signature(dist.split_group).parameters:
        return  # older versions of torch split groups of GPUs alone
    rank = dist.get_rank()
    for ranks in ([[0, 2], [3, 1]], [[1, 2, 0]]):
        mine = next((part for part in ranks if rank in part), None)
        part = dist.split_group(split_ranks=ranks, group_desc="a part")
        if mine is None:
            assert part == dist.GroupMember.NON_GROUP_MEMBER
            continue
        assert dist.get_process_group_ranks(part) == mine and part.rank() == mine.index(rank)
        total = torch.full((3,), float(rank))
        dist.all_reduce(total, group=part)
        same(total, torch.full((3,), float(sum(mine))))
        assert part.group_desc == "a part"
        pair = dist.split_group(part, [[1, 0]])
        if part.rank() < 2:
            objects = [None] * 2
            dist.all_gather_object(objects, rank, group=pair)
            assert objects == [mine[1], mine[0]]
            dist.destroy_process_group(pair)
    dist.barrier()


@on_torch_ranks(3)
def test_monitored_barriers():
    group = dist.group.WORLD
    limit = datetime.timedelta(seconds=30)
    group.monitored_barrier(limit)
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match="Ranks 1, 2 failed to pass monitoredBarrier in 10 ms"):
            group.monitored_barrier(datetime.timedelta(milliseconds=10), wait_all_ranks=True)
    dist.barrier()
    if dist.get_rank() != 0:
        with pytest.raises(RuntimeError, match="successfully reached monitoredBarrier"):
            group.monitored_barrier(limit)
    group.monitored_barrier(limit)


@on_torch_ranks(2)
def test_tensors_elsewhere_are_refused():
    with pytest.raises(ringlet.InvalidArgument, match="'meta'"):
        dist.all_reduce(torch.ones(3, device="meta"))
    parameter = torch.nn.Parameter(torch.ones(3))
    dist.all_reduce(parameter)
    same(parameter.detach(), torch.full((3,), 2.0))
    parameter = torch.nn.Parameter(torch.ones(3, 2).t())
    dist.broadcast(parameter, 0)
    dist.all_reduce(parameter)
    same(parameter.detach(), torch.full((2, 3), 2.0))
