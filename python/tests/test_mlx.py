"""mx.distributed over Ringlet: groups of ringlet-mlx where it is installed, and eager ones."""

import subprocess
import sys

import numpy as np
import pytest
from ranks import launch, on_ranks, run, run_program
from samples import DTYPES, SHAPES, random_array

from ringlet import arrays

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")

import mlx.nn as nn  # noqa: E402
import mlx.optimizers as optim  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402

import ringlet  # noqa: E402
import ringlet.mlx as over  # noqa: E402

NAMES = [name for name in (arrays.dtype_name(dtype) for dtype in DTYPES) if name != "complex128"]


def groups(world):
    """The world as MLX's group, of each kind that there is."""
    if over.native:
        yield over.group(world)
    yield over.EagerGroup(world)


def is_lazy(group):
    return not isinstance(group, over.EagerGroup)


def array_of(values):
    if values.dtype.name == "bfloat16":
        return mx.array(np.asarray(values, np.float32)).astype(mx.bfloat16)
    return mx.array(values)


def same(got, wanted):
    values = np.array(got.astype(mx.float32)) if got.dtype == mx.bfloat16 else np.array(got)
    assert values.shape == wanted.shape, (values.shape, wanted.shape)
    np.testing.assert_array_equal(values, wanted.astype(values.dtype))


def parts_of(dtype, shape, size):
    return [random_array(dtype, shape, rank) for rank in range(size)]


@on_ranks(1, 2, 4)
def test_collectives(world):
    rank, size = world.rank(), world.size()
    mx.set_default_device(mx.cpu)
    for group in groups(world):
        assert (group.rank(), group.size()) == (rank, size)
        for name in NAMES:
            for shape in SHAPES:
                parts = parts_of(arrays.numpy_dtype(name), shape, size)
                mine = array_of(parts[rank])
                stacked = np.stack([np.asarray(part, np.complex64 if name == "complex64" else np.float64) for part in parts])
                total = stacked.sum(0) > 0 if name == "bool" else stacked.sum(0)
                same(over.all_sum(mine, group=group), total)
                if name != "complex64":
                    same(over.all_max(mine, group=group), stacked.max(0))
                    same(over.all_min(mine, group=group), stacked.min(0))
                # In a group of one MLX leaves a scalar as it is.
                same(over.all_gather(mine, group=group), parts[0] if size == 1 else np.concatenate([np.atleast_1d(part) for part in parts]))
                if shape == (64,):
                    same(over.sum_scatter(mine, group=group), total.reshape(size, -1)[rank])
        nine_axes = mx.arange(16).reshape(1, 2, 1, 2, 1, 2, 1, 2, 1)
        same(over.all_sum(nine_axes, group=group), np.arange(16).reshape(1, 2, 1, 2, 1, 2, 1, 2, 1) * size)
        spread = mx.arange(24).reshape(4, 6)
        same(over.all_sum(spread.T[::2], group=group), np.arange(24).reshape(4, 6).T[::2] * size)
        same(over.all_sum(3, group=group), np.array(3 * size))


@on_ranks(2, 3)
def test_messages(world):
    rank, size = world.rank(), world.size()
    right, left = (rank + 1) % size, (rank - 1) % size
    for group in groups(world):
        # All send before they receive, also more than a socket buffers.
        for count in (1, 1000, 3_000_000):
            sent = over.send(mx.full((count,), rank, mx.float32), right, group=group)
            mx.eval(sent)
            got = over.recv((count,), mx.float32, left, group=group)
            assert mx.all(got == left) and mx.all(sent == rank)
            mx.eval(over.send(got * 10, right, group=group))
            got = over.recv_like(got, left, group=group)
            assert mx.all(got == (left - 1) % size * 10)
        # What is sent stays as it was, whatever becomes of the array.
        for step in range(20):
            mx.eval(over.send(mx.full((1000,), step + rank, mx.float32), right, group=group) * 0 - 1)
        for step in range(20):
            assert mx.all(over.recv((1000,), mx.float32, left, group=group) == step + left)
        # More than may be on their way at a time.
        for number in range(1100):
            if rank == 0:
                mx.eval(over.send(mx.array([number]), 1, group=group))
            elif rank == 1:
                assert over.recv((1,), mx.int32, 0, group=group).item() == number
        # Shapes are the receiver's own.
        mx.eval(over.send(mx.arange(6).reshape(2, 3), right, group=group))
        same(over.recv((6,), mx.int32, left, group=group), np.arange(6))
        for call in (lambda to: over.send(mx.ones(1), to, group=group), lambda to: over.recv((1,), mx.float32, to, group=group)):
            with pytest.raises(ValueError):
                call(size)


@on_ranks(2, 4)
def test_split_groups(world):
    rank, size = world.rank(), world.size()
    for group in groups(world):
        by_half, by_turn = group.split(rank // 2), group.split(rank % 2)
        assert (by_half.size(), by_half.rank()) == (2, rank % 2)
        assert (by_turn.size(), by_turn.rank()) == (size // 2, rank // 2)
        x = mx.ones((1, 8)) * rank
        y = over.all_gather(over.all_sum(x, group=by_half), group=by_turn)
        same(y, np.repeat(np.arange(size).reshape(size // 2, 2).sum(-1, keepdims=True), 8, 1))
        back = group.split(0, size - rank)
        assert back.rank() == size - 1 - rank
        if rank == 0:
            with pytest.raises(ValueError, match="color is -1"):
                group.split(-1)
        else:
            assert group.split(0).size() == size - 1
        # A split comes in no order with operations that still run.
        if is_lazy(group):
            running = over.all_sum(mx.ones(100_000), group=group)
            mx.async_eval(running)
            part = group.split(rank % 2)
            assert over.all_sum(mx.array(1), group=part).item() == size // 2 and running[0].item() == size


@on_ranks(2)
def test_gradients(world):
    rank, size = world.rank(), world.size()
    for group in groups(world):
        scale = mx.array([1.0, 2.0, 3.0])
        for call in (over.all_sum, over.all_max, over.all_min):
            got = mx.grad(lambda x: (call(x, group=group) * scale).sum())(mx.ones(3))
            same(got, np.array([1.0, 2.0, 3.0]))
        weights = mx.arange(size * 2, dtype=mx.float32)
        got = mx.grad(lambda x: (over.all_gather(x, group=group) * weights).sum())(mx.ones(2))
        same(got, np.arange(2) + 2.0 * rank)
        got = mx.grad(lambda x: over.all_gather(x, group=group)[0])(mx.array(1.0))
        assert got.item() == (1.0 if rank == 0 else 0.0)
        values, tangents = mx.jvp(lambda x: over.all_sum(x * x, group=group), [mx.array(3.0)], [mx.array(1.0)])
        assert values[0].item() == 9.0 * size and tangents[0].item() == 6.0 * size


@on_ranks(2)
def test_graphs(world):
    """What ringlet-mlx can do, and eager groups cannot."""
    size = world.size()
    for group in groups(world):
        compiled = mx.compile(lambda x: over.all_sum(x * 2, group=group) + 1)
        if not is_lazy(group):
            with pytest.raises((ValueError, RuntimeError, ringlet.Error)):
                compiled(mx.ones(3))
            continue
        for value in (1.0, 2.0):
            same(compiled(mx.full((3,), value)), np.full(3, 2 * value * size + 1))
        same(mx.vmap(lambda x: over.all_sum(x, group=group))(mx.arange(6).reshape(2, 3)), np.arange(6).reshape(2, 3) * size)
        # Nothing is sent before it is evaluated, and what nobody needs never is.
        unused = over.all_sum(mx.ones(world.rank() + 1), group=group)
        assert over.all_sum(mx.array(1), group=group).item() == size
        del unused
        # Two streams that ranks meet in different orders.
        streams = [mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)]
        first = [over.all_sum(mx.full((50_000,), number), group=group, stream=stream) for number, stream in enumerate(streams)]
        mx.async_eval(*(first if world.rank() == 0 else reversed(first)))
        assert [part[7].item() for part in first] == [0, size]


def model():
    mx.random.seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 4))


def samples(step, rank):
    random = np.random.default_rng(1000 * step + rank)
    return mx.array(random.normal(size=(6, 8)).astype(np.float32)), mx.array(random.normal(size=(6, 4)).astype(np.float32))


def loss_of(net, x, y):
    return nn.losses.mse_loss(net(x), y)


@on_ranks(2, 4)
def test_training(world):
    rank, size = world.rank(), world.size()
    whole, optimizer = model(), optim.AdamW(1e-2)
    for step in range(4):
        parts = [samples(step, each) for each in range(size)]
        _, gradients = nn.value_and_grad(whole, loss_of)(
            whole, mx.concatenate([p[0] for p in parts]), mx.concatenate([p[1] for p in parts])
        )
        optimizer.update(whole, gradients)
    wanted = dict(tree_flatten(whole.parameters()))
    for group in groups(world):
        over._default = group
        over.install()
        try:
            net, optimizer = model(), optim.AdamW(1e-2)
            for step in range(4):
                _, gradients = nn.value_and_grad(net, loss_of)(net, *samples(step, rank))
                optimizer.update(net, nn.average_gradients(gradients))
            for name, got in tree_flatten(net.parameters()):
                assert mx.allclose(got, wanted[name], atol=1e-5), name
            sharded, optimizer = nn.fully_shard(model(), group=group), optim.AdamW(1e-2)
            for step in range(4):
                _, gradients = nn.value_and_grad(sharded, loss_of)(sharded, *samples(step, rank))
                optimizer.update(sharded, gradients)
            for name, got in tree_flatten(sharded.parameters()):
                part = wanted[name.removeprefix("module.")]
                rows = part.shape[0] // size
                assert mx.allclose(got, part[rank * rows : (rank + 1) * rows], atol=1e-5), name
        finally:
            over.uninstall()


@on_ranks(2)
def test_ranks_of_both_kinds(world):
    """A rank without ringlet-mlx takes part beside one that has it."""
    group = over.group(world) if over.native and world.rank() == 0 else over.EagerGroup(world)
    x = mx.arange(12, dtype=mx.float32).reshape(4, 3)
    same(over.all_sum(x, group=group), np.arange(12).reshape(4, 3) * 2)
    same(over.all_gather(x, group=group), np.tile(np.arange(12).reshape(4, 3), (2, 1)))
    same(over.sum_scatter(x, group=group), np.arange(12).reshape(2, 2, 3)[world.rank()] * 2)
    other = 1 - world.rank()
    mx.eval(over.send(x, other, group=group))
    same(over.recv((3, 4), mx.float32, other, group=group), np.arange(12).reshape(3, 4))
    part = group.split(0)
    assert over.all_sum(mx.array(1), group=part).item() == 2


@on_ranks(2)
def test_the_group_outlives_the_handle(world):
    group = over.group(world.split(0))
    assert over.all_sum(mx.array(1), group=group).item() == 2
    del group
    world.barrier()


def test_groups_of_one():
    with ringlet.Group() as world:
        for group in groups(world):
            x = mx.ones(3)
            for call in (over.all_sum, over.all_max, over.all_min, over.all_gather, over.sum_scatter):
                assert mx.array_equal(call(x, group=group), x)
            with pytest.raises(ValueError):
                over.send(x, 0, group=group)
            assert group.split(0).size() == 1


def test_install_names_what_it_does_not_know():
    over.install()
    try:
        with pytest.raises(ValueError, match="no back end 'gloo'"):
            mx.distributed.init(backend="gloo")
        assert mx.distributed.is_available("ringlet") and not mx.distributed.is_available("gloo")
        with pytest.raises(ValueError, match="jaccl"):
            mx.distributed.init(backend="ring", all_gather_factory=lambda rank, size: None)
    finally:
        over.uninstall()
    assert not mx.distributed.is_available("ringlet")


def test_a_strict_start_needs_a_configuration():
    with pytest.raises(ringlet.InvalidArgument):
        over.init(strict=True)


@pytest.mark.parametrize("ranks", [1, 2])
def test_programs_run_unchanged(tmp_path, ranks):
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys
import mlx.core as mx
import mlx.nn as nn
group = mx.distributed.init(backend="ring")
means = nn.average_gradients({"w": mx.full((4,), group.rank() + 1.0)})
print(sys.argv[1:], "rank", group.rank(), "of", group.size(), means["w"].tolist())
"""
    )
    done = launch(ranks, sys.executable, "-m", "ringlet.mlx", program, "--steps", 5)
    assert done.returncode == 0, done.stdout
    mean = [1.0] * 4 if ranks == 1 else [1.5] * 4
    for rank in range(ranks):
        assert f"['--steps', '5'] rank {rank} of {ranks} {mean}" in done.stdout, done.stdout


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_another_version_of_mlx_is_refused():
    said = python(
        """
import sys, types, warnings
built = types.ModuleType("ringlet_mlx._built_with")
built.MLX = "0.1.7"
sys.modules["ringlet_mlx._built_with"] = built
import ringlet, ringlet.mlx
print(ringlet.mlx.native, ringlet.mlx.reason)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    groups = [ringlet.mlx.group(ringlet.Group()) for _ in range(2)]
print(type(groups[0]).__name__, len(told), told[0].category.__name__, told[0].message)
"""
    )
    assert said.startswith("False ") and "EagerGroup 1 RuntimeWarning" in said, said
    if over.native:
        assert said.count("built for MLX 0.1.7") == 2, said


@pytest.mark.skipif(not over.native, reason="ringlet-mlx is not installed")
def test_another_version_of_ringlet_is_refused():
    import ringlet_mlx

    with pytest.raises(TypeError, match="different versions"):
        ringlet_mlx.group(object())


def test_a_program_that_is_not_there(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    for arguments, text in [
        (["none.py"], "there is no program 'none.py'"),
        (["package"], "there is no program 'package'"),
        (["-m", "none"], "there is no module 'none' that can be run"),
        (["-m", "none.some"], "there is no module 'none.some' that can be run"),
        (["-m", "package"], "there is no module 'package' that can be run"),
    ]:
        done = run("ringlet.mlx", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, f"ringlet.mlx: {text}\n")


def test_no_elements_of_bf16_need_no_ml_dtypes():
    run_program(
        """if True:
        import sys
        sys.modules["ml_dtypes"] = None  # as if it were not installed
        import mlx.core as mx
        import ringlet
        group = ringlet.Group()
        for shape in (0,), (0, 4), (3, 0):
            nothing = mx.zeros(shape, mx.bfloat16)
            for got in group.all_sum(nothing), group.all_gather(nothing), ringlet.average_gradients({"a": nothing}, group)["a"]:
                assert got.shape == shape and got.dtype == mx.bfloat16, got
        """
    )
