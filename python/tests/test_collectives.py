"""Each call against what NumPy computes of all ranks' arrays."""

import functools
import queue
import threading

import numpy as np
import pytest
from ranks import on_ranks
from samples import COMPLEX, DTYPES, REAL, SHAPES, equal, layouts, random_array

import ringlet
from ringlet import arrays as kinds


def of_ranks(group, dtype, shape, seed=0):
    return [random_array(dtype, shape, (seed, rank)) for rank in range(group.size())]


def folded(function, arrays):
    """NumPy's own result, in rank order; of bool as Ringlet says."""
    if arrays[0].dtype == np.bool_:
        function = {np.add: np.logical_or, np.multiply: np.logical_and}.get(function, function)
    return np.asarray(functools.reduce(function, arrays)).astype(arrays[0].dtype).reshape(arrays[0].shape)


OPERATIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
BITWISE = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}


@on_ranks(1, 2, 3, 4)
def test_reductions(group):
    for dtype in DTYPES:
        for shape in SHAPES:
            arrays = of_ranks(group, dtype, shape)
            for name, function in OPERATIONS.items():
                if dtype in COMPLEX and name in ("max", "min"):
                    continue
                wanted = folded(function, arrays)
                for mine in layouts(arrays[group.rank()]):
                    before = mine.copy()
                    equal(getattr(group, f"all_{name}")(mine), wanted)
                    equal(mine, before)
                    equal(getattr(group, f"all_{name}_")(mine.copy()), wanted)
                    reduced = group.reduce(mine, group.size() - 1, op=name)
                    if group.rank() == group.size() - 1:
                        equal(reduced, wanted)
                    else:
                        assert reduced is None


@on_ranks(2, 4)
def test_means(group):
    rank, size = group.rank(), group.size()
    for dtype in [*REAL, *COMPLEX]:
        for shape in SHAPES:
            arrays = of_ranks(group, dtype, shape)
            wanted = (folded(np.add, arrays) / size).astype(dtype).reshape(shape)
            equal(group.all_mean(arrays[rank]), wanted)
            equal(group.all_mean_(arrays[rank].copy()), wanted)
            reduced = group.reduce(arrays[rank], size - 1, op="mean")
            if rank == size - 1:
                equal(reduced, wanted)
            if shape:
                equal(group.reduce_scatter(arrays[rank], op="mean"), np.array_split(wanted, size)[rank])
                counts = [0] * (size - 1) + [shape[0]]
                part = group.reduce_scatter(arrays[rank], op="mean", counts=counts)
                equal(part, wanted if rank == size - 1 else wanted[:0])
    for call in (group.all_mean, lambda x: group.reduce(x, op="mean"), lambda x: group.reduce_scatter(x, op="mean")):
        with pytest.raises(ringlet.InvalidArgument, match="mean of i32 cannot be held in it"):
            call(np.ones(4, np.int32))


@on_ranks(1, 2, 3, 4)
def test_bits(group):
    rank, size = group.rank(), group.size()
    for dtype in DTYPES:
        for name, function in BITWISE.items():
            if dtype in [*REAL, *COMPLEX]:
                for call in (group.all_reduce, group.reduce, group.reduce_scatter):
                    with pytest.raises(ringlet.InvalidArgument, match=f"{name} of {kinds.dtype_name(dtype)}"):
                        call(np.ones(3, dtype), op=name)
                continue
            for shape in [(0,), (7,), (3, 5), (1001,)]:
                arrays = [np.frombuffer(np.random.default_rng((rank, 5)).bytes(8 * 1001), np.uint8) for rank in range(size)]
                arrays = [(part % 2 if dtype == np.bool_ else part).view(dtype)[: int(np.prod(shape))].reshape(shape) for part in arrays]
                wanted = functools.reduce(function, arrays)
                equal(group.all_reduce(arrays[rank], op=name), wanted)
                equal(group.all_reduce_(arrays[rank].copy(), op=name), wanted)
                equal(group.all_reduce_async(arrays[rank], op=name).wait(), wanted)
                equal(group.all_reduce_async_(arrays[rank].copy(), op=name).wait(), wanted)
                equal(group.reduce_scatter(arrays[rank], op=name), np.array_split(wanted, size)[rank])
                reduced = group.reduce(arrays[rank], 0, op=name)
                if rank == 0:
                    equal(reduced, wanted)
    with pytest.raises(ringlet.InvalidArgument, match="'band' is no operation; there are sum, .*bit_xor, and mean"):
        group.all_reduce(np.ones(1), op="band")


@on_ranks(1, 2, 3, 4)
def test_what_moves(group):
    rank, size = group.rank(), group.size()
    for dtype in DTYPES:
        for shape in SHAPES:
            arrays = of_ranks(group, dtype, shape)
            whole = np.concatenate([np.atleast_1d(array) for array in arrays])
            for mine in layouts(arrays[rank]):
                equal(group.all_gather(mine), whole)
                gathered = group.gather(mine, size - 1)
                assert rank == size - 1 or gathered is None
                if rank == size - 1:
                    equal(gathered, whole)
                equal(group.broadcast(mine, size - 1), arrays[size - 1])
                assert group.broadcast_(copied := mine.copy(), 0) is copied
                equal(copied, arrays[0])


@on_ranks(1, 2, 3, 4)
def test_what_is_divided(group):
    rank, size = group.rank(), group.size()
    for dtype in DTYPES:
        for rows, inner in [(0, ()), (size, ()), (3 * size, (2, 3)), (2 * size + 1, (4,))]:
            arrays = of_ranks(group, dtype, (rows, *inner))
            total = folded(np.add, arrays)
            for mine in layouts(arrays[rank]):
                equal(group.sum_scatter(mine), np.array_split(total, size)[rank])
                equal(group.reduce_scatter(mine, op="prod"), np.array_split(folded(np.multiply, arrays), size)[rank])
                if dtype not in COMPLEX:
                    equal(group.reduce_scatter(mine, op="max"), np.array_split(folded(np.maximum, arrays), size)[rank])
                if rows % size:
                    with pytest.raises(ringlet.InvalidArgument, match="rows do not divide"):
                        group.scatter(mine)
                    with pytest.raises(ringlet.InvalidArgument, match="rows do not divide .*; give send_counts and receive_counts"):
                        group.all_to_all(mine)
                    continue
                equal(group.scatter(mine, size - 1), np.split(arrays[size - 1], size)[rank])
                equal(group.all_to_all(mine), np.concatenate([np.split(array, size)[rank] for array in arrays]))


@on_ranks(1, 3, 4)
def test_counts(group):
    rank, size = group.rank(), group.size()
    counts = [3 * number for number in range(size)]
    ends = np.cumsum(counts)[:-1]
    for dtype in (np.float32, np.int16, np.complex64):
        arrays = of_ranks(group, dtype, (sum(counts), 2))
        parts = [np.split(array, ends) for array in arrays]
        equal(group.sum_scatter(arrays[rank], counts=counts), np.split(folded(np.add, arrays), ends)[rank])
        equal(group.all_gather(parts[0][rank], counts=counts), arrays[0])
        gathered = group.gather(parts[0][rank], 0, counts=counts)
        if rank == 0:
            equal(gathered, arrays[0])
        equal(group.scatter(arrays[rank], 0, counts=counts), parts[0][rank])
        received = group.all_to_all(arrays[rank], send_counts=counts, receive_counts=[counts[rank]] * size)
        equal(received, np.concatenate([parts[source][rank] for source in range(size)]))
    with pytest.raises(ringlet.InvalidArgument, match="one for each of the"):
        group.all_gather(np.zeros(3), counts=[1] * (size + 1))


@on_ranks(2, 3, 4)
def test_messages(group):
    rank, size = group.rank(), group.size()
    right, left = (rank + 1) % size, (rank - 1) % size
    for dtype in DTYPES:
        for shape in SHAPES:
            arrays = of_ranks(group, dtype, shape)
            for mine in layouts(arrays[rank]):
                work = group.send_async(mine, right)
                equal(group.recv(shape, dtype, left), arrays[left])
                work.wait()
                work = group.send_async(mine, right)
                equal(group.recv(mine.shape, mine.dtype, left), arrays[left])
                work.wait()
                work = group.send_async(mine, right)
                equal(group.recv_like(mine, left), arrays[left])
                work.wait()
                into = np.zeros(shape, dtype)
                work = group.recv_async_(into, left)
                assert group.send(mine, right) is None
                assert work.wait() is into
                equal(into, arrays[left])


@on_ranks(1, 4)
def test_groups(group):
    rank, size = group.rank(), group.size()
    part = group.split(rank % 2, key=-rank if rank == 0 else size - rank)
    assert part.size() == (size + 1 - rank % 2) // 2
    assert part.all_sum(np.int64(1)) == part.size()
    assert group.split(-1 if rank else 0) is None or rank == 0
    assert f"rank {rank} of {size}" in repr(group)
    assert group.links() in ("tcp", "memory", "mixed") or size == 1
    assert len(group.link_info()) == size - 1
    assert group.algorithm("all_reduce", 64 << 20)
    assert group.describe_placement()
    assert not group.elastic() and group.epoch() == 0 and group.door() == "" and group.guests() == 0
    part.close()
    with pytest.raises(ringlet.InvalidArgument, match="closed"):
        part.barrier()


@on_ranks(4)
def test_groups_of_members_alone(group):
    rank = group.rank()
    if rank != 1:
        part = group.create([3, 0, 2])
        assert part.size() == 3 and part.rank() == [3, 0, 2].index(rank)
        equal(part.all_gather(np.int64(rank)), np.array([3, 0, 2]))
        part.close()
    if rank in (0, 1):
        with pytest.raises(ringlet.MismatchError):
            group.create([0, 1] if rank == 0 else [1, 0], tag=5)
    assert group.all_sum(np.int64(1)) == 4


@on_ranks(3)
def test_messages_from_any_rank(group):
    rank = group.rank()
    if rank != 0:
        for stream in range(4):
            group.send(np.full(3, rank, np.float32), 0, stream=stream)
        return
    for stream, receive in enumerate(
        [
            lambda: group.recv_any((3,), "f32", stream=stream),
            lambda: group.recv_any_async((3,), np.float32, stream=stream).wait(),
            lambda: ringlet.Received(into, group.recv_any_(into, stream=stream)),
            lambda: ringlet.Received(into, group.recv_any_async_(into, stream=stream).wait()),
        ]
    ):
        sources = set()
        for _ in range(2):
            into = np.zeros(3, np.float32)
            received = receive()
            equal(received.values, np.full(3, received.source, np.float32))
            sources.add(received.source)
        assert sources == {1, 2}


@on_ranks(2)
def test_works_call_back(group):
    other = 1 - group.rank()
    told = queue.SimpleQueue()
    work = group.recv_like_async(np.zeros(3), other)
    work.on_done(told.put)
    assert told.empty()
    # The other one sends after this.
    group.barrier()
    group.send_async(np.ones(3), other)
    assert told.get(timeout=60) is None and work.done()
    work.on_done(told.put)
    assert told.get(timeout=60) is None
    # Beside a thread that waits, of a work that is dropped, and with an error.
    work = group.recv_like_async(np.zeros(3), other)
    waiting = threading.Thread(target=work.wait)
    waiting.start()
    work.on_done(lambda error: told.put(("first", error)))
    work.on_done(lambda error: told.put(("second", error)))
    group.send(np.ones(3), other)
    waiting.join()
    work.on_done(lambda error: told.put(("third", error)))
    assert [told.get(timeout=60) for _ in range(3)] == [("first", None), ("second", None), ("third", None)]
    group.all_sum_async(np.zeros(3)).on_done(told.put)
    assert told.get(timeout=60) is None
    part = group.split(0)
    part.all_sum_async(np.zeros(2 + group.rank())).on_done(told.put)
    assert type(told.get(timeout=60)) is ringlet.MismatchError
    # The world has failed, so that the test's own last barrier is of another one.
    group.barrier = lambda: None


@on_ranks(2)
def test_streams_overlap(group):
    big, small = np.ones(1 << 20, np.float32), np.ones(3)
    works = [group.all_sum_async(big if number % 2 else small, stream=number) for number in range(10)]
    for number, work in reversed(list(enumerate(works))):
        result = work.wait(60)
        assert work.done() and work.wait() is result and repr(work) == "<ringlet.Work: ended>"
        equal(result, np.full_like(big if number % 2 else small, 2))


@on_ranks(2)
def test_numbers_of_elements_count_and_not_shapes(group):
    mine = np.arange(24.0).reshape([(4, 6), (6, 4)][group.rank()])
    rows, *rest = mine.shape
    for call in (group.all_sum, group.broadcast, group.all_to_all):
        assert call(mine).shape == mine.shape
    equal(group.broadcast(mine).ravel(), np.arange(24.0))
    assert group.all_gather(mine).shape == (2 * rows, *rest)
    assert group.scatter(mine).shape == (rows // 2, *rest)
    for call in (
        lambda world: world.all_sum(mine[group.rank() :]),
        lambda world: world.sum_scatter(mine),
        lambda world: world.all_gather(mine, counts=[rows, rows]),
        lambda world: world.recv_like(mine, 0) if group.rank() else world.send(mine, 1),
    ):
        group.barrier()
        with ringlet.init() as world, pytest.raises(ringlet.MismatchError):
            call(world)
