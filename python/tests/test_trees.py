"""Trees of arrays, and what is computed of them: averages, norms, optimizers, schedules."""

import collections

import ml_dtypes
import numpy as np
import pytest
from ranks import on_ranks
from samples import equal, random_array

import ringlet
from ringlet import trees

Pair = collections.namedtuple("Pair", "weight bias")


def model(dtype=np.float32, seed=0):
    """A tree of all forms, with a scalar and an empty array."""
    shapes = {"layers": [Pair((5, 3), (5,)), Pair((2, 5), (2,))], "scale": (), "rest": ((0, 4), [(7,)])}

    def arrays(form, way):
        if isinstance(form, dict):
            return {key: arrays(child, (*way, key)) for key, child in form.items()}
        if isinstance(form, Pair):
            return Pair(*(arrays(child, (*way, "pair")) for child in form))
        if isinstance(form, list) or (isinstance(form, tuple) and form and not isinstance(form[0], int)):
            return type(form)(arrays(child, (*way, "list")) for child in form)
        return random_array(dtype, form, (seed, *map(len, way)))

    return arrays(shapes, ())


def leaves(tree):
    return [leaf for _, leaf in trees.leaves_of(tree)]


def test_names_and_forms():
    tree = model()
    assert [name for name, _ in trees.leaves_of(tree)] == [
        "layers.0.0",
        "layers.0.1",
        "layers.1.0",
        "layers.1.1",
        "scale",
        "rest.0",
        "rest.1.0",
    ]
    again = trees.rebuilt(tree, iter(leaves(tree)))
    assert type(again["layers"][0]) is Pair and type(again["rest"]) is tuple
    assert all(a is b for a, b in zip(leaves(tree), leaves(again)))
    with ringlet.Group() as group:
        equal(ringlet.average_gradients(np.ones(3), group), np.ones(3))
        with pytest.raises(ringlet.InvalidArgument, match="no .a.b. below"):
            ringlet.average_gradients({"a": np.ones(1), "a.b": np.ones(1)}, group)


class Named(dict):
    """With an argument of its own, and keys that are attributes."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key) from None


class Frozen(dict):
    def __setitem__(self, key, value):
        raise TypeError("it never changes")


class FrozenWithCopy(Frozen):
    def __copy__(self):
        return self


class Stack(list):
    def __init__(self, depth, layers):
        super().__init__(layers)
        self.depth = depth


class Point(collections.namedtuple("Point", "x y")):
    def __new__(cls, x):
        return super().__new__(cls, x, 2 * x)


class Pair(tuple):
    def __new__(cls, one, other):
        return super().__new__(cls, (one, other))


def test_classes_of_ones_own_are_kept():
    by_default = collections.defaultdict(lambda: "default", a=np.ones(2))
    named = Named("model")
    named["weight"] = np.ones(2)
    trees_of_classes = [
        by_default,
        collections.OrderedDict([("b", np.ones(2)), ("a", np.ones(1))]),
        collections.Counter(a=np.ones(2)),
        named,
        Frozen(a=np.ones(2)),
        FrozenWithCopy(a=np.ones(2)),
        Stack(2, [np.ones(2), {"b": np.ones(1)}]),
        Point(np.ones(1)),
        Pair(np.ones(1), np.ones(2)),
    ]
    trees_of_classes[-1].unit = "metre"
    with ringlet.Group() as group:
        for tree in trees_of_classes:
            before = [(name, leaf, leaf.copy()) for name, leaf in trees.leaves_of(tree)]
            tripled = ringlet.SGD(1.0).apply_gradients(trees.rebuilt(tree, (-2 * leaf for _, leaf, _ in before)), tree)
            assert type(tripled) is type(tree) and tripled is not tree
            assert [name for name, _ in trees.leaves_of(tripled)] == [name for name, _, _ in before]
            for (name, leaf, old), got in zip(before, leaves(tripled)):
                equal(got, 3 * old)
                equal(leaf, old)
            shard = ringlet.FullyShard(group)
            shard.add("model", tree)
            assert type(shard.forward(0)) is type(tree)
        averages = ringlet.average_gradients({"layers": trees_of_classes}, group)["layers"]
    assert averages[-1].unit == "metre"
    assert averages[0]["missing"] == "default" and averages[3].name == "model" and averages[6].depth == 2
    equal(averages[3].weight, np.ones(2))


def test_keys_that_are_no_text_are_named():
    group, ones = ringlet.Group(), np.ones(2)
    for call in (
        lambda tree: ringlet.average_gradients(tree, group),
        lambda tree: ringlet.average_gradients_(tree, group),
        lambda tree: ringlet.clip_grad_norm(tree, 1.0),
        lambda tree: ringlet.SGD(0.1).init(tree),
        lambda tree: ringlet.Checkpoint().add("model", tree),
        lambda tree: ringlet.OuterTrainer(group, tree, inner_steps=2),
    ):
        for tree in ({"\ud800": ones}, {"a": [ones, {"b\udc80": ones}]}):
            with pytest.raises(ringlet.InvalidArgument, match=r"the tree has the key 'b?\\ud[8c][08]0', which is no Unicode text"):
                call(tree)


def test_leaves_that_are_no_arrays_are_named():
    array, frozen = np.ones(2), np.ones(2)
    frozen.flags.writeable = False

    def tree(leaf):
        return {"layers": [{"bias": array}, {"bias": leaf}]}

    with ringlet.Group() as group:
        calls = [
            lambda x: ringlet.average_gradients(x, group),
            lambda x: ringlet.average_gradients_(x, group),
            lambda x: ringlet.SGD(0.1).apply_gradients(x, x),
            lambda x: ringlet.FullyShard(group).add("model", x),
            lambda x: ringlet.OuterTrainer(group, x),
            lambda x: ringlet.Checkpoint().add("model", x),
        ]
        for call in calls:
            for leaf, text in [("text", "a str is no array"), (None, "None is no array"), (object(), "a object is no array")]:
                with pytest.raises(TypeError, match=f"^'layers.1.bias': {text}"):
                    call(tree(leaf))
            with pytest.raises(ringlet.InvalidArgument, match="^'layers.1.bias': .*no such dtype"):
                call(tree(np.zeros(2, "U3")))
        with pytest.raises(ringlet.InvalidArgument, match="^'layers.1.bias': .*read-only"):
            ringlet.average_gradients_(tree(frozen), group)
        with pytest.raises(TypeError, match="^'value': a str is no array"):
            ringlet.average_gradients("text", group)


@on_ranks(1, 2, 4)
def test_averages(group):
    rank, size = group.rank(), group.size()
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        of_ranks = [leaves(model(dtype, seed)) for seed in range(size)]
        wanted = [np.asarray(sum(values[1:], values[0]) / size).astype(dtype) for values in zip(*of_ranks)]
        for all_reduce_size in (32 << 20, 40, 0):
            mine = model(dtype, rank)
            average = ringlet.average_gradients(mine, group, all_reduce_size=all_reduce_size)
            for got, want, left in zip(leaves(average), wanted, leaves(mine)):
                equal(got, want)
                assert not np.shares_memory(got, left)
            for left, before in zip(leaves(mine), of_ranks[rank]):
                equal(left, before)
            assert ringlet.average_gradients_(mine, group, all_reduce_size=all_reduce_size) is mine
            for got, want in zip(leaves(mine), wanted):
                equal(got, want)
    weighted = ringlet.average_gradients([np.full(3, float(rank))], group, weight=rank + 1.0)
    np.testing.assert_allclose(weighted[0], sum(r * (r + 1) for r in range(size)) / sum(r + 1 for r in range(size)))
    rounded = ringlet.average_gradients([np.full(3, 1 + rank / 512, np.float32)], group, communication_type="bf16")
    assert rounded[0].dtype == np.float32 and (rounded[0] == ml_dtypes.bfloat16(rounded[0][0])).all() or size == 1
    # An element is a multiple of the step where the largest one is 127 steps; the others are between two steps or small.
    exact = np.arange(-127, 128, dtype=np.float32) + (rank - (size - 1) / 2) * 2
    exact = np.clip(exact, -127, 127)
    for wire in ("int8", ringlet.Wire("int8", least_elements=0), ringlet.Wire("int4", feedback=True, least_elements=0)):
        got = ringlet.average_gradients({"w": exact}, group, communication_type=wire)["w"]
        everyone = group.all_gather(got).reshape(size, -1)
        assert (everyone == got).all()
        mean = np.mean(group.all_gather(exact).reshape(size, -1), axis=0)
        np.testing.assert_allclose(got, mean, atol=0 if size == 1 else 20 if wire != "int8" and wire.name == "int4" else 1)
    with pytest.raises(ringlet.InvalidArgument, match="int3"):
        ringlet.average_gradients({"w": exact}, group, communication_type=ringlet.Wire("int3"))


@on_ranks(1, 2)
def test_averages_of_what_comes_in_parts(group):
    size = group.size()
    averager = ringlet.GradientAverager(group, all_reduce_size=64)
    for step in range(3):
        mine = leaves(model(np.float32, group.rank() + step))
        for values in mine:
            averager.add(values)
        averager.finish()
        for got, *parts in zip(mine, *(leaves(model(np.float32, rank + step)) for rank in range(size))):
            equal(got, np.asarray(sum(parts) / size).astype(np.float32))
    assert averager.collectives() > 0 or size == 1
    averager.set_weight(1.0 + group.rank())

    gradients = {"a": np.zeros(3), "b": [np.zeros(2), np.zeros(1)]}
    bucketer = ringlet.GradientBucketer(group, gradients)
    for step in range(3):
        gradients["a"][:], gradients["b"][1][:] = group.rank(), step
        for name in ["b.1", "a"] if step else ["a", "b.1"]:
            bucketer.ready(name)
        bucketer.finish()
        assert bucketer.averaged() == ["a", "b.1"]
        assert (gradients["a"] == (size - 1) / 2).all() and gradients["b"][1] == step
    with pytest.raises(ringlet.InvalidArgument, match="c"):
        bucketer.ready("c")
    with pytest.raises(ringlet.InvalidArgument, match="b.0"):
        ringlet.GradientBucketer(group, gradients, allow_missing=False).finish()


@on_ranks(2)
def test_trees_that_differ_are_told_where(group):
    with pytest.raises(ringlet.MismatchError, match="layer.weight"):
        ringlet.average_gradients({"layer": {"weight": np.zeros(3 + group.rank(), np.float32)}}, group)
    with pytest.raises(ringlet.InvalidArgument, match="read-only"):
        values = np.zeros(3)
        values.flags.writeable = False
        ringlet.average_gradients_([values], group)


@on_ranks(2)
def test_a_weight_that_one_rank_alone_gives_is_told(group):
    """Each call that fails ends its world."""
    weight = 2.0 if group.rank() == 0 else None
    gradients = {"a": np.ones(100, np.float32)}

    def averaged_in_parts(world):
        averager = ringlet.GradientAverager(world, weight=weight)
        averager.add(gradients["a"])
        averager.finish()

    for average in (
        lambda world: ringlet.average_gradients(gradients, world, weight=weight),
        lambda world: ringlet.average_gradients(gradients, world, weight=weight, communication_type="int8"),
        averaged_in_parts,
    ):
        group.barrier()
        with ringlet.init() as world, pytest.raises(ringlet.MismatchError, match="either every rank gives a weight or none does"):
            average(world)


@on_ranks(1, 2)
def test_norms(group):
    tree = {"a": np.full(4, 3.0), "b": [np.full(4, 4.0)]}
    clipped, norm = ringlet.clip_grad_norm(tree, 1.0)
    assert norm == 10.0
    np.testing.assert_allclose(clipped["b"][0], 0.4, rtol=1e-6)
    equal(tree["a"], np.full(4, 3.0))
    sharded, norm = ringlet.clip_grad_norm_sharded(tree, 1.0, group)
    np.testing.assert_allclose(norm, 10 * group.size() ** 0.5)
    np.testing.assert_allclose(sharded["a"], 0.3 / group.size() ** 0.5, rtol=1e-6)
    assert ringlet.clip_grad_norm_(tree, 1.0) == 10.0
    np.testing.assert_allclose(tree["a"], 0.3, rtol=1e-6)


# Each optimizer's first step from zero state, by its formula.
RATE = 0.125
FIRST_STEPS = {
    ringlet.SGD: lambda p, g: p - RATE * g,
    ringlet.RMSprop: lambda p, g: p - RATE * g / (np.sqrt(0.01 * g * g) + 1e-8),
    ringlet.Adagrad: lambda p, g: p - RATE * g / (np.sqrt(g * g) + 1e-8),
    ringlet.AdaDelta: lambda p, g: p - RATE * np.sqrt(1e-6) / np.sqrt(0.1 * g * g + 1e-6) * g,
    ringlet.Adam: lambda p, g: p - RATE * 0.1 * g / (np.sqrt(0.001 * g * g) + 1e-8),
    ringlet.AdamW: lambda p, g: p * (1 - RATE * 0.01) - RATE * 0.1 * g / (np.sqrt(0.001 * g * g) + 1e-8),
    ringlet.Adamax: lambda p, g: p - RATE * 0.1 * g / (np.abs(g) + 1e-8),
    ringlet.Lion: lambda p, g: p - RATE * np.sign(0.1 * g),
}


@pytest.mark.parametrize("kind", FIRST_STEPS, ids=lambda kind: kind.__name__)
def test_optimizers(kind):
    parameters, gradients = model(np.float64, 1), model(np.float64, 2)
    wanted = [FIRST_STEPS[kind](p, g) for p, g in zip(leaves(parameters), leaves(gradients))]
    optimizer = kind(RATE)
    after = optimizer.apply_gradients(gradients, parameters)
    for got, want, before in zip(leaves(after), wanted, leaves(parameters)):
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert not np.shares_memory(got, before)
    assert optimizer.step == 1 and optimizer.learning_rate == RATE
    again = kind(RATE)
    again.init(parameters)
    assert again.apply_gradients_(gradients, parameters) is parameters
    for got, want in zip(leaves(parameters), leaves(after)):
        equal(got, want)
    state = again.state()
    assert sum(values.nbytes for values in state.values()) == again.state_bytes()
    assert again.state_bytes() > 0 or kind is ringlet.SGD
    for name, values in state.items():
        equal(values, optimizer.state()[name])
        values[...] = 0  # it is the state itself
        assert not again.state()[name].any()


def test_options_of_optimizers():
    with pytest.raises(ringlet.InvalidArgument, match="eps"):
        ringlet.Adam(1e-3, eps=0)
    with pytest.raises(ringlet.InvalidArgument):
        ringlet.SGD(-1.0)
    half = {"w": np.ones(4, np.float16)}
    optimizer = ringlet.AdamW(1e-3, state_dtype="float32")
    optimizer.apply_gradients(half, half)
    assert {values.dtype for values in optimizer.state().values()} == {np.dtype(np.float32)}
    assert set(optimizer.state()) == {"w.m", "w.v"}
    with pytest.raises(ringlet.InvalidArgument, match="v"):
        optimizer.apply_gradients({"v": np.ones(4)}, half)


def test_schedules():
    assert ringlet.exponential_decay(0.1, 0.5)(2) == 0.025
    assert ringlet.step_decay(0.1, 0.5, 10)(19) == 0.05
    assert ringlet.cosine_decay(1.0, 10, 0.5)(10) == 0.5
    assert ringlet.linear_schedule(0, 1, 4)(1) == 0.25
    joined = ringlet.join_schedules([ringlet.linear_schedule(0, 1, 4), lambda step: 7.0 + step], [4])
    assert [joined(step) for step in (0, 3, 4, 6)] == [0, 0.75, 7, 9]
    optimizer = ringlet.SGD(joined)
    rates = []
    for _ in range(6):
        optimizer.apply_gradients([np.ones(1)], [np.ones(1)])
        rates.append(optimizer.learning_rate)
    assert rates == [0, 0.25, 0.5, 0.75, 7, 8]
    optimizer.learning_rate = 0.5
    assert optimizer.learning_rate == 0.5

    def fails(step):
        raise KeyError(step)

    with pytest.raises(KeyError):
        ringlet.SGD(fails)
