"""Optimizers, FSDP and checkpoints."""

import os

import ml_dtypes
import numpy as np
import pytest
from ranks import on_ranks
from samples import equal

import ringlet


def parameters_of(seed):
    random = np.random.default_rng(seed)
    return {"layer": [random.normal(size=(7, 3)).astype(np.float32), random.normal(size=5).astype(np.float32)], "scale": np.float32(seed)}


def gradients_of(seed):
    """In another order than the parameters, as those of JAX, which sorts keys."""
    return dict(reversed(parameters_of(seed).items()))


def trained_alone(size, steps, optimizer, max_norm=None):
    """What one rank computes of the mean of all ranks' gradients."""
    parameters = parameters_of(100)
    for step in range(steps):
        gradients = [parameters_of(1 + step * size + rank) for rank in range(size)]
        mean = {
            "layer": [np.mean([g["layer"][i] for g in gradients], 0, np.float32) for i in range(2)],
            "scale": np.mean([g["scale"] for g in gradients], dtype=np.float32),
        }
        if max_norm is not None:
            mean, _ = ringlet.clip_grad_norm(mean, max_norm)
        parameters = optimizer.apply_gradients(mean, parameters)
    return parameters


def close(got, wanted):
    for one, other in zip([*got["layer"], got["scale"]], [*wanted["layer"], wanted["scale"]]):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


class Descent:
    """An optimizer of the program's own."""

    def apply_gradients(self, gradients, parameters):
        assert set(gradients) == set(parameters) == {"layer.0", "layer.1", "scale"}
        return {name: parameters[name] - np.float32(0.1) * gradients[name] for name in parameters}


@on_ranks(2)
def test_an_averager_may_be_dropped_with_its_gradients(group):
    """As where a backward pass fails: what has begun goes on in memory that nobody else has."""

    def step():
        averager = ringlet.GradientAverager(group, all_reduce_size=1 << 10)
        averager.add(np.ones(4_000_000, np.float32))
        raise ValueError

    for _ in range(3):
        with pytest.raises(ValueError):
            step()
        equal(group.all_sum(np.ones(3)), np.full(3, 2.0))


@on_ranks(1, 2, 3)
def test_fsdp(group):
    rank, size = group.rank(), group.size()
    for max_norm in (None, 0.5):
        for make in (lambda: ringlet.AdamW(0.01), Descent):
            optimizer, parameters = make(), parameters_of(100)
            updater = ringlet.FsdpUpdater(group, max_norm=max_norm)
            in_place, other = parameters_of(100), make()
            in_place["scale"] = np.asarray(in_place["scale"])
            for step in range(3):
                gradients = gradients_of(1 + step * size + rank)
                after = ringlet.fsdp_apply_gradients(gradients, parameters, optimizer, group, max_norm=max_norm)
                parameters, norm = (after, None) if max_norm is None else after
                assert (updater.apply_gradients_(gradients, in_place, other) is None) == (max_norm is None)
                equal(in_place["layer"][0], parameters["layer"][0])
                assert max_norm is None or norm > max_norm
            single = ringlet.AdamW(0.01) if make is not Descent else ringlet.SGD(0.1)
            close(parameters, trained_alone(size, 3, single, max_norm))
    assert updater.layout() is not None or size == 1
    layout = ringlet.ShardLayout(parameters, size)
    assert layout.rows("layer.0", 0)[0] == 0 and layout.rows("layer.0", size - 1)[1] == 7


@on_ranks(1, 2, 3)
def test_fsdp_in_blocks(group):
    """The steps of blocks are 1/4 at most for these means; with feedback many steps add up."""
    rank, size = group.rank(), group.size()
    gradients = {"w": (np.arange(60, dtype=np.float32).reshape(20, 3) - 30) / 4 + np.float32(0.01) * (rank + 1)}
    mean = (np.arange(60).reshape(20, 3) - 30) / 4 + 0.01 * (size + 1) / 2
    for wire in ("int8", ringlet.Wire("int8", least_elements=0), ringlet.Wire("int8", feedback=True, least_elements=0)):
        updater = ringlet.FsdpUpdater(group, reduce_dtype=wire)
        shard = ringlet.FullyShard(group, reduce_dtype=wire)
        shard.add("m", {"w": np.zeros((20, 3), np.float32)})
        total = np.zeros((20, 3))
        for _ in range(20):
            zeros = {"w": np.zeros((20, 3), np.float32)}
            after, _norm = updater.apply_gradients(gradients, zeros, Taking())
            np.testing.assert_allclose(after["w"], mean, atol=0.25)
            total += after["w"]
            shard.reduce_gradients(0, gradients)
            shard.finish()
            begin, end = shard.layout().rows("m.w", rank)
            equal(shard.gradients()["m.w"], after["w"][begin:end])
        if wire != "int8" and wire.feedback:
            np.testing.assert_allclose(total / 20, mean, atol=0.02)
            with pytest.raises(ringlet.InvalidArgument, match="needs an FsdpUpdater"):
                ringlet.fsdp_apply_gradients(gradients, zeros, Taking(), group, reduce_dtype=wire)
    shards = ringlet.ElasticFsdp(group, zeros, lambda: ringlet.SGD(1.0), copies=1, reduce_dtype=wire)
    assert shards.enter(group) == ""
    shards.average(gradients)
    shards.update()
    shards.gather()
    np.testing.assert_allclose(zeros["w"], -mean, atol=0.25)
    ringlet.FullyShard(group, reduce_dtype="f64")
    with pytest.raises(ringlet.InvalidArgument, match="reduce_dtype is i32"):
        ringlet.FsdpUpdater(group, reduce_dtype="i32")


@on_ranks(2, 4)
def test_one_mean_whatever_the_division(group):
    """In rank order buckets, shards and a loop on one machine give the same bits, for small and large parameters."""
    group.barrier()
    with ringlet.init(order="rank") as world:
        rank, size = world.rank(), world.size()
        for width in (40, 640):
            gradients = [
                {f"w{i}": np.random.default_rng((width, i, r)).normal(size=(width + i, width)).astype(np.float32) for i in range(4)}
                for r in range(size)
            ]
            for dtype in (np.float32, ml_dtypes.bfloat16, np.float16):
                mine = {name: array.astype(dtype) for name, array in gradients[rank].items()}
                wanted = {}
                for name in mine:
                    total = gradients[0][name].astype(dtype).astype(np.float32)
                    for other in gradients[1:]:
                        total += other[name].astype(dtype).astype(np.float32)
                    wanted[name] = (total / np.float32(size)).astype(dtype)
                for all_reduce_size in (0, 100_000, 32 << 20):
                    averaged = ringlet.average_gradients(mine, world, all_reduce_size=all_reduce_size)
                    for name, mean in wanted.items():
                        equal(averaged[name], mean)
                for communication_size in (0, 32 << 20):
                    zeros = {name: np.zeros_like(array) for name, array in mine.items()}
                    after = ringlet.fsdp_apply_gradients(mine, zeros, Taking(), world, communication_size=communication_size)
                    for name, mean in wanted.items():
                        equal(after[name], mean)


class Taking:
    """Takes the gradients' means as parameters."""

    def apply_gradients(self, gradients, parameters):
        return {name: gradients[name] for name in parameters}


@on_ranks(1, 2, 3)
def test_fully_shard(group):
    rank, size = group.rank(), group.size()
    shard, optimizer = ringlet.FullyShard(group), ringlet.AdamW(0.01)
    whole = parameters_of(100)
    for name in ("first", "second"):
        assert shard.add(name, whole) == shard.modules() - 1
    for step in range(3):
        for module in range(2):
            full = shard.forward(module)
            assert type(full["layer"]) is list and full["layer"][0].shape == (7, 3)
        for module in (1, 0):
            shard.backward(module)
            shard.reduce_gradients(module, gradients_of(1 + step * size + rank))
        with pytest.raises(ringlet.InvalidArgument, match="before finish"):
            shard.apply_gradients(optimizer)
        shard.finish()
        assert set(shard.gradients()) == set(shard.parameters())
        shard.apply_gradients(optimizer)
    wanted = trained_alone(size, 3, ringlet.AdamW(0.01))
    for module in range(2):
        close(shard.forward(module), wanted)
    assert sum(shard.layout().count(r) for r in range(size)) == 2 * 27


@on_ranks(1, 2)
def test_gathered_parameters_are_those_of_their_step(group):
    before = parameters_of(100)
    own, elastic = ringlet.FullyShard(group), ringlet.ElasticFullyShard(group, lambda: ringlet.SGD(1.0), copies=1)
    for shard in (own, elastic):
        shard.add("model", before)
    elastic.enter(group)
    for shard, take_step in ((own, lambda: own.apply_gradients(ringlet.SGD(1.0))), (elastic, elastic.update)):
        forward, backward = shard.forward(0), shard.backward(0)
        shard.reduce_gradients(0, before)
        shard.finish()
        take_step()
        for gathered in (forward, backward):
            equal(gathered["layer"][0], before["layer"][0])
            equal(gathered["scale"], np.asarray(before["scale"]))
        equal(shard.forward(0)["layer"][0], np.zeros((7, 3), np.float32))


def test_multi_optimizer():
    rates = {"layer.0": 0.5, "layer.1": 0.5, "scale": 0.25}
    asked = []

    def of_layers(name, values):
        asked.append((name, values.shape, float(values.flat[0])))
        return name.startswith("layer")

    parameters, gradients = parameters_of(1), parameters_of(2)
    both = ringlet.MultiOptimizer([ringlet.SGD(rates["layer.0"]), ringlet.SGD(rates["scale"], momentum=0.5)], [of_layers])
    for _ in range(2):
        parameters = both.apply_gradients(gradients, parameters)
    assert asked == [(name, np.shape(leaf), float(np.asarray(leaf).flat[0])) for name, leaf in ringlet.trees.leaves_of(gradients)]
    layers = {"layer": parameters_of(1)["layer"]}
    scale = {"scale": parameters_of(1)["scale"]}
    alone, other = ringlet.SGD(0.5), ringlet.SGD(0.25, momentum=0.5)
    for _ in range(2):
        layers = alone.apply_gradients({"layer": gradients["layer"]}, layers)
        scale = other.apply_gradients({"scale": gradients["scale"]}, scale)
    equal(parameters["layer"][0], layers["layer"][0])
    equal(parameters["layer"][1], layers["layer"][1])
    equal(np.asarray(parameters["scale"]), np.asarray(scale["scale"]))
    assert both.step == 2 and both.learning_rate == 0.5 and list(both.state()) == ["scale.v"]
    both.learning_rate = 0.125
    assert (both.learning_rate, both.step) == (0.125, 2)

    refusing = ringlet.MultiOptimizer([ringlet.SGD(1), ringlet.SGD(1)], [lambda name, values: {}["none"]])
    with pytest.raises(KeyError):
        refusing.apply_gradients(gradients, parameters)
    with pytest.raises(ringlet.InvalidArgument, match="filter"):
        ringlet.MultiOptimizer([ringlet.SGD(1), ringlet.SGD(1)])


@on_ranks(2)
def test_multi_optimizer_on_shards(group):
    """Filters are asked while another thread of the call waits for the group."""
    whole, sharded = parameters_of(1), parameters_of(1)
    gradients = parameters_of(3)

    def make():
        return ringlet.MultiOptimizer([ringlet.SGD(0.5), ringlet.SGD(0.25)], [lambda name, values: name == "layer.0"])

    whole = make().apply_gradients(gradients, whole)
    sharded = ringlet.fsdp_apply_gradients(gradients, sharded, make(), group)
    for i in range(2):
        equal(sharded["layer"][i], whole["layer"][i])


@on_ranks(1, 3)
def test_checkpoints(group):
    directory = group_directory(group)
    shard, optimizer = ringlet.FullyShard(group), ringlet.AdamW(0.01)
    shard.add("model", parameters_of(1))
    shard.reduce_gradients(0, parameters_of(2))
    shard.finish()
    shard.apply_gradients(optimizer)
    same = {"step": np.arange(3)}

    def checkpoint(shards, state, rest):
        made = ringlet.Checkpoint()
        made.add("rest", rest).add_sharded("model", shards, shard.layout()).add_slots("optimizer", state, shard.layout())
        return made

    assert ringlet.load_checkpoint(group, directory, checkpoint(shard.parameters(), optimizer.state(), same)) is None
    saved = checkpoint(shard.parameters(), optimizer.state(), same)
    saved["rate"], saved["seed"], saved["data"] = 0.5, 7, "text"
    report = ringlet.save_checkpoint(group, directory, saved, step=12)
    assert report.total_bytes >= report.bytes > 0 and os.path.isdir(report.path)
    assert ringlet.latest_checkpoint(group, directory) == 12

    shards = {name: np.zeros_like(values) for name, values in shard.parameters().items()}
    state = {name: np.zeros_like(values) for name, values in optimizer.state().items()}
    rest = {"step": np.zeros_like(same["step"])}
    loaded = checkpoint(shards, state, rest)
    assert ringlet.load_checkpoint(group, directory, loaded) == 12
    for name, values in shard.parameters().items():
        equal(shards[name], values)
    for name, values in optimizer.state().items():
        equal(state[name], values)
    equal(rest["step"], same["step"])
    assert (loaded["rate"], loaded["seed"], loaded["data"]) == (0.5, 7, "text")
    assert "none" not in loaded
    with pytest.raises(KeyError):
        loaded["none"]
    with pytest.raises(ringlet.IoError):
        ringlet.load_checkpoint(group, directory, loaded, step=99)


def test_values_are_kept_as_they_are():
    values = ringlet.Checkpoint()
    for value in (2**63 - 1, -(2**63), 0.5, "text", True, np.int16(-3), np.float32(0.5), np.asarray(7)):
        values["x"] = value
        assert values["x"] == value and type(values["x"]) in (int, float, str)
    for value in (2**63, -(2**63) - 1, 2**70, np.uint64(2**64 - 1)):
        with pytest.raises(ringlet.InvalidArgument, match=rf"'x' is {value}; an integer is from -2\*\*63 to"):
            values["x"] = value
    for value in ([1], None, b"text", 1j):
        with pytest.raises(TypeError, match="'x' is a .*; it is an int, a float or a str"):
            values["x"] = value
    assert values["x"] == 7


def test_checkpoints_are_not_saved_into_a_file(tmp_path):
    (tmp_path / "file").write_text("text")
    for directory in (tmp_path / "file", tmp_path / "file" / "checkpoints"):
        with ringlet.Group() as group, pytest.raises(ringlet.IoError, match="file' is not a directory|file: is not a directory"):
            ringlet.save_checkpoint(group, directory, ringlet.Checkpoint().add("x", np.ones(1)), step=1)


def group_directory(group):
    """A directory that all ranks share, removed with the last of them."""
    import tempfile

    name = np.zeros(4096, np.uint8)
    if group.rank() == 0:
        group_directory.kept = tempfile.TemporaryDirectory()
        name[: len(group_directory.kept.name)] = list(group_directory.kept.name.encode())
    return bytes(group.broadcast(name)).rstrip(b"\0").decode()


def test_gathered_parameters_outlive_their_shards_on_a_rank_alone():
    """The memory would be given back, and be of use to the next arrays."""
    with ringlet.Group() as group:
        shard = ringlet.FullyShard(group)
        shard.add("m", {"w": np.full(1_000_000, 7.0)})
        forward, backward = shard.forward(0), shard.backward(0)
        del shard
        others = [np.full(1_000_000, 3.0) for _ in range(4)]
        assert (forward["w"] == 7).all() and (backward["w"] == 7).all() and len(others) == 4
