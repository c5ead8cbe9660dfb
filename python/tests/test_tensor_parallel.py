"""Layers whose weights are spread over the ranks."""

import numpy as np
import pytest
from ranks import on_ranks
from samples import equal

import ringlet


@on_ranks(1, 2, 4)
def test_a_pair_of_layers_is_the_whole_one(group):
    """Small whole numbers, so that every order of additions gives the same."""
    random = np.random.default_rng(3)
    x, into, out = (random.integers(-3, 4, size=shape).astype(np.float32) for shape in ((5, 6), (6, 8), (8, 3)))
    enter, leave = ringlet.AllToSharded(group), ringlet.ShardedToAll(group)
    own_in, own_out = ringlet.shard_axis(group, into, 1), ringlet.shard_axis(group, out, -2)
    width = 8 // group.size()
    mine = slice(group.rank() * width, (group.rank() + 1) * width)
    equal(own_in, into[:, mine])
    equal(own_out, out[mine])

    hidden = enter.forward(x) @ own_in
    y = leave.forward(hidden @ own_out)
    equal(y, x @ into @ out)
    assert leave.backward(y) is y
    hidden_gradient = leave.backward(y) @ own_out.T
    wanted = y @ out.T @ into.T
    partial = hidden_gradient @ own_in.T
    equal(enter.backward(partial), wanted)
    equal(enter.backward_async(partial).wait(), wanted)
    for in_place in (enter.backward_, lambda array: enter.backward_async_(array).wait()):
        array = partial.copy()
        assert in_place(array) is array
        equal(array, wanted)
    for in_place in (leave.forward_, lambda array: leave.forward_async_(array).wait()):
        array = hidden @ own_out
        assert in_place(array) is array
        equal(array, y)
    equal(leave.forward_async(hidden @ own_out).wait(), y)


@on_ranks(2)
def test_fused_weights_are_cut_apart(group):
    fused = np.arange(10 * 3, dtype=np.int32).reshape(3, 10)
    rank = group.rank()
    equal(ringlet.shard_axis(group, fused, 1, [2, 4, 4]), fused[:, [[0, 2, 3, 6, 7], [1, 4, 5, 8, 9]][rank]])
    for axis, segments, match in ((1, [3, 7], "do not divide"), (1, [2, 4], "add up"), (2, None, "axis"), (-3, None, "axis")):
        with pytest.raises(ringlet.InvalidArgument, match=match):
            ringlet.shard_axis(group, fused, axis, segments)
