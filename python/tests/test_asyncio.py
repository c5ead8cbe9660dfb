"""Works that are awaited."""

import asyncio

import numpy as np
import pytest
from ranks import on_ranks

import ringlet


@on_ranks(1, 3)
def test_works_are_awaited(group):
    async def train():
        first = await group.all_sum_async(np.full(3, group.rank()))
        many = await asyncio.gather(*(wait(number) for number in range(8)))
        return first, many

    async def wait(number):
        return await group.all_sum_async(np.full(2, number), stream=number)

    first, many = asyncio.run(train())
    assert (first == sum(range(group.size()))).all()
    assert [values.tolist() for values in many] == [[number * group.size()] * 2 for number in range(8)]


@on_ranks(2)
def test_other_tasks_run_meanwhile(group):
    if group.rank() == 1:
        group.recv_like(np.zeros(1), 0, stream=1)
        group.send(np.zeros(1), 0)
        return

    # Rank 1 sends what main() awaits once another task has had its turn.
    async def send_later():
        await asyncio.sleep(0)
        group.send(np.zeros(1), 1, stream=1)

    async def main():
        sending = asyncio.create_task(send_later())
        await group.recv_like_async(np.zeros(1), 1)
        await sending

    asyncio.run(main())


@on_ranks(2)
def test_errors_are_raised_where_works_are_awaited(group):
    async def main():
        with pytest.raises(ringlet.MismatchError):
            await group.all_sum_async(np.zeros(3 + group.rank()))

    asyncio.run(main())
    group.barrier = lambda: None


@on_ranks(2)
def test_a_cancelled_task_leaves_the_operation(group):
    async def main():
        values = np.ones(3)
        if group.rank() == 0:
            work = group.recv_async_(values, 1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(await_(work), 0.05)
            group.send(np.zeros(1), 1, stream=1)
            await work
            assert (values == 5).all()
        else:
            group.recv_like(np.zeros(1), 0, stream=1)
            group.send(np.full(3, 5.0), 0)

    async def await_(work):
        return await work

    asyncio.run(main())
