"""Errors about what callers give: which argument, its value, and what it may be."""

import operator

import ml_dtypes
import numpy as np
import pytest

import ringlet
from ringlet import arrays

X = np.ones(3)
TREE = {"w": np.ones(3, np.float32)}


def checkpoint():
    return ringlet.Checkpoint().add("model", {"w": np.ones(3)})


# Each with what the text says.
CASES = [
    (lambda group: group.all_sum(X, stream="x"), "stream is 'x'; it is an int"),
    (lambda group: group.all_sum(X, stream=1.5), "stream is 1.5; it is an int"),
    (lambda group: group.all_sum(X, stream=2**40), f"stream is {2**40}, which is out of range"),
    (lambda group: group.all_sum(X, stream=-1), "stream is -1; streams are numbered from 0 to 1023"),
    (lambda group: group.all_sum_async(X, timeout="1"), "timeout is '1'; it is a number or None"),
    (lambda group: group.all_sum(X, timeout=-1), "timeout is -1.0; it is more than 0 and at most 1e9 s"),
    (lambda group: group.all_sum(X, timeout=0), "timeout is 0.0; it is more than 0 and at most 1e9 s"),
    (lambda group: group.split(0, timeout=float("nan")), "timeout is nan; it is more than 0 and at most 1e9 s"),
    (lambda group: group.all_reduce(X, op=np.add), "op is <ufunc 'add'>; it is a str"),
    (lambda group: group.all_reduce(X, op="add"), "'add' is no operation; there are sum, "),
    (lambda group: group.reduce(X, root="0"), "root is '0'; it is an int"),
    (lambda group: group.reduce(X, root=None), "root is None; it is an int"),
    (lambda group: group.send(X, "x"), "destination is 'x'; it is an int"),
    (lambda group: group.recv(3, "f32", 0), "shape is 3; it is a list of ints"),
    (lambda group: group.recv((2, -1), "f32", 0), r"shape is \[2, -1\]; none of them is negative"),
    (lambda group: group.all_gather(X, counts=3), "counts is 3; it is a list of ints"),
    (lambda group: group.all_gather(X, counts=[1.5]), r"counts is \[1.5\]; it is a list of ints"),
    (lambda group: group.all_gather(X, counts=[-1]), r"counts is \[-1\]; none of them is negative"),
    (lambda group: group.all_gather(X, counts=[1, 2]), r"counts is \[1, 2\]; one for each of the 1 ranks"),
    (lambda group: group.all_to_all(X, send_counts=[3], receive_counts=["x"]), r"receive_counts is \['x'\]; it is a list of ints"),
    (lambda group: group.all_to_all(X, send_counts=[1, 2], receive_counts=[3]), r"send_counts is \[1, 2\]; one for each of the 1 ranks"),
    (lambda group: group.all_to_all(X, send_counts=[3], receive_counts=[]), r"receive_counts is \[\]; one for each of the 1 ranks"),
    (lambda group: group.split("x"), "color is 'x'; it is an int"),
    (lambda group: group.create("x"), "ranks is 'x'; it is a list of ints"),
    (lambda group: group.algorithm("all_reduce", "x"), "bytes is 'x'; it is an int"),
    (lambda group: group.algorithm("all_reduce", -3), "bytes is -3, which is out of range"),
    (lambda group: group.barrier_async().wait("x"), "timeout is 'x'; it is a number or None"),
    (lambda group: group.barrier_async().wait(-1), "timeout is -1.0; it is from 0 to 1e9 s"),
    (lambda group: group.barrier_async().on_done(3), "function is 3; it is a function"),
    (lambda group: ringlet.average_gradients(TREE, "group"), "group is 'group'; it is a ringlet.Group"),
    (lambda group: ringlet.average_gradients(TREE, group, weight="1"), "weight is '1'; it is a number or None"),
    (lambda group: ringlet.average_gradients(TREE, group, all_reduce_size=1e6), "all_reduce_size is 1000000.0; it is an int"),
    (
        lambda group: ringlet.average_gradients(TREE, group, communication_type="x8"),
        "communication_type is 'x8'; it is 'f16', 'bf16', 'int8'",
    ),
    (lambda group: ringlet.average_gradients(TREE, group, communication_type=ringlet.Wire(3)), "name is 3; it is a str"),
    (
        lambda group: ringlet.average_gradients(TREE, group, communication_type="f64"),
        "'f64' is no type of communication; f16, bf16, int8 and int4 are possible",
    ),
    (lambda group: ringlet.GradientAverager(3), "group is 3; it is a ringlet.Group"),
    (lambda group: ringlet.GradientBucketer(group, TREE, allow_missing=3), "allow_missing is 3; it is True or False"),
    (lambda group: ringlet.clip_grad_norm(TREE, "x"), "max_norm is 'x'; it is a number"),
    (lambda group: ringlet.FsdpUpdater(group, dp_group=3), "dp_group is 3; it is a ringlet.Group"),
    (lambda group: ringlet.FsdpUpdater(group, shard_weights=["x"]), r"shard_weights is \['x'\]; it is a list of numbers"),
    (lambda group: ringlet.FullyShard(group, prefetch="x"), "prefetch is 'x'; it is an int"),
    (lambda group: ringlet.FullyShard(group, reduce_dtype="x"), "reduce_dtype is 'x'; it is a floating dtype, 'int8'"),
    (lambda group: ringlet.FullyShard(group).forward("x"), "module is 'x'; it is an int"),
    (lambda group: ringlet.FullyShard(group).forward(-1), "module is -1, which is out of range"),
    (lambda group: ringlet.FullyShard(group).apply_gradients("x"), "optimizer is 'x'; it is a ringlet.Optimizer"),
    (lambda group: ringlet.ShardLayout(TREE, "x"), "ranks is 'x'; it is an int"),
    (lambda group: ringlet.ShardLayout(TREE, 2, weights=[None]), r"weights is \[None\]; it is a list of numbers"),
    (lambda group: ringlet.ShardLayout({"w": "x"}, 2), "'w': a str is no array"),
    (lambda group: ringlet.ShardLayout(TREE, 2).rows(3, 0), "name is 3; it is a str"),
    (lambda group: ringlet.ShardLayout(TREE, 2).count(None), "rank is None; it is an int"),
    (lambda group: checkpoint().add_sharded("shards", TREE, 3), "layout is 3; it is a ringlet.ShardLayout"),
    (lambda group: ringlet.Checkpoint().add(3, TREE), "name is 3; it is a str"),
    (lambda group: operator.setitem(ringlet.Checkpoint(), 3, 1), "name is 3; it is a str"),
    (lambda group: ringlet.fsdp_apply_gradients(TREE, TREE, None, group), "optimizer is None; it is a ringlet.Optimizer, or has apply_"),
    (lambda group: ringlet.TraceSpan(3), "name is 3; it is a str"),
    (lambda group: ringlet.TraceSpan("step", wait="x"), "wait is 'x'; it is True or False"),
    (lambda group: ringlet.AllToSharded(3), "group is 3; it is a ringlet.Group"),
    (lambda group: ringlet.shard_axis(group, np.ones((2, 2)), "x"), "axis is 'x'; it is an int"),
    (lambda group: ringlet.SGD("fast"), "the learning rate is 'fast'; it is a number or a function of the step"),
    (lambda group: ringlet.SGD(lambda step: "x"), "the schedule returned 'x' for step 0; it returns a number"),
    (lambda group: ringlet.SGD(0.1, momentum="x"), "momentum is 'x'; it is a number"),
    (lambda group: ringlet.SGD(0.1, nesterov="yes"), "nesterov is 'yes'; it is True or False"),
    (lambda group: ringlet.AdamW(0.1, betas=0.9), "betas is 0.9; it is two numbers"),
    (lambda group: ringlet.AdamW(0.1, betas=(0.9,)), r"betas is \(0.9,\); it is two numbers"),
    (lambda group: ringlet.AdamW(0.1, state_dtype="x"), "there is no dtype 'x'; there are bool, u8"),
    (lambda group: setattr(ringlet.SGD(0.1), "step", -1), "step is -1; it is from 0 to"),
    (lambda group: setattr(ringlet.SGD(0.1), "learning_rate", None), "the learning rate is None; it is a number or a function"),
    (lambda group: ringlet.MultiOptimizer([3]), "an optimizer of MultiOptimizer is 3; it is a ringlet.Optimizer"),
    (lambda group: ringlet.MultiOptimizer([ringlet.SGD(1)] * 2, [3]), "a filter of MultiOptimizer is 3; it is a function"),
    (lambda group: ringlet.cosine_decay("x", 3), "init is 'x'; it is a number"),
    (lambda group: ringlet.cosine_decay(1, -3), "decay_steps is -3; it is from 0 to"),
    (lambda group: ringlet.join_schedules([0.1], []), "the learning rate is 0.1|schedule"),
    (lambda group: ringlet.save_checkpoint(group, "none", checkpoint(), step=-1), "step is -1; it is from 0 to"),
    (lambda group: ringlet.save_checkpoint(group, "none", {}, step=1), "checkpoint is {}; it is a ringlet.Checkpoint"),
    (lambda group: ringlet.save_checkpoint(group, "none", checkpoint(), step=1, keep="x"), "keep is 'x'; it is an int"),
    (lambda group: ringlet.load_checkpoint(3, "none", checkpoint()), "group is 3; it is a ringlet.Group"),
    (lambda group: ringlet.latest_checkpoint(group, "none", step="x"), "step is 'x'; it is an int"),
    (lambda group: ringlet.ElasticTrainer(group, 3), "state is 3; it is a ringlet.Checkpoint"),
    (lambda group: ringlet.ElasticTrainer(group, checkpoint(), on_change=3), "on_change is 3; it is a function"),
    (lambda group: ringlet.OuterTrainer(group, TREE, inner_steps="x"), "inner_steps is 'x'; it is an int"),
    (lambda group: ringlet.OuterTrainer(group, TREE, clock=3), "clock is 3; it is a function"),
    (lambda group: ringlet.OuterTrainer(group, TREE).run(3, steps=50), "inner is 3; it is a function"),
    (lambda group: ringlet.OuterTrainer(group, TREE).run(lambda step: 1, steps=-1), "steps is -1; it is from 0 to"),
    (lambda group: ringlet.ElasticFsdp(group, TREE, 3), "make_optimizer is 3; it is a function"),
    (lambda group: ringlet.ElasticFsdp(group, TREE, lambda: 3).enter(group), "make_optimizer returned is 3; it is a ringlet.Optimizer"),
    (lambda group: ringlet.init(rank="x"), "rank is 'x'; it is an int or None"),
    (lambda group: ringlet.init(rank=2**40), f"rank is {2**40}, which is out of range"),
    (lambda group: ringlet.init(trace=3), "trace is 3; it is the path of a file"),
    (lambda group: ringlet.init(on_delay=3), "on_delay is 3; it is a function"),
    (lambda group: ringlet.init(encrypt="yes"), "encrypt is 'yes'; it is True or False or None"),
    (lambda group: ringlet.init(connect_timeout="3"), "connect_timeout is '3'; it is a number or None"),
    (lambda group: ringlet.init(warn_after=-1), "warn_after is -1.0; it is from 0 to 1e6 s"),
    (lambda group: ringlet.init(connect_timeout=0), "connect_timeout is 0.0; it is more than 0 and at most 1e6 s"),
    (lambda group: ringlet.init(operation_timeout=-1), "operation_timeout is -1.0; it is more than 0 and at most 1e6 s"),
    (lambda group: ringlet.init(heartbeat_timeout=1e7), "heartbeat_timeout is 10000000.0; it is more than 0 and at most 1e6 s"),
    (lambda group: ringlet.init(coordinator="x", rank=0, world_size=2), '^the option coordinator: "x" is not an address'),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_is_wrong_is_told(number):
    call, text = CASES[number]
    with ringlet.Group() as group, pytest.raises((TypeError, ringlet.InvalidArgument), match=text) as caught:
        call(group)
    assert "incompatible" not in str(caught.value) and "::" not in str(caught.value)
    if "out of range" in text:
        assert caught.type is ringlet.InvalidArgument


def test_dtypes_that_ringlet_does_not_have():
    with ringlet.Group() as group:
        for dtype, text in [
            ("x", "there is no dtype 'x'; there are bool, u8, .*complex128"),
            (">f4", "the dtype '>f4' has the other byte order"),
            (np.dtype(">i8"), "the dtype dtype..>i8.. has the other byte order"),
            ([("a", "f4")], "there is no dtype"),
            (None, "there is no dtype None"),
            (3, "there is no dtype 3"),
        ]:
            for receive in (lambda dtype: group.recv((3,), dtype, 0), lambda dtype: group.recv_any((3,), dtype)):
                with pytest.raises(ringlet.InvalidArgument, match=text):
                    receive(dtype)
        for record in ([("a", "f4")], [("a", ">f4")]):
            with pytest.raises(ringlet.InvalidArgument, match="an array of dtype .*Ringlet has no such dtype"):
                group.all_sum(np.zeros(2, record))
    assert arrays.dtype_name("bfloat16") == arrays.dtype_name(ml_dtypes.bfloat16) == "bf16"


def test_errors_of_functions_that_are_called_pass():
    """Also those that are about what another function of the binding was given."""
    cause = KeyError("cause")

    def rate(step):
        raise TypeError("f(): incompatible function arguments") from cause

    with pytest.raises(TypeError, match="incompatible function arguments$") as caught:
        ringlet.SGD(rate)
    assert caught.value.__cause__ is cause
