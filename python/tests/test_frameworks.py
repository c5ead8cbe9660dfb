"""Arrays of PyTorch, JAX and MLX, where these are installed."""

import numpy as np
import pytest
from ranks import on_ranks
from samples import DTYPES, SHAPES, random_array

import ringlet
from ringlet import _ringlet, arrays

# JAX has 64-bit types only if it is told to, and MLX no f64 on all devices.
NAMES = [arrays.dtype_name(dtype) for dtype in DTYPES]


class Torch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.names = NAMES

    def make(self, values):
        if values.dtype.name == "bfloat16":
            return self.torch.from_numpy(np.asarray(values, np.float32)).to(self.torch.bfloat16)
        return self.torch.from_numpy(values.copy())

    def numpy(self, array):
        assert isinstance(array, self.torch.Tensor)
        return array.to(self.torch.float32).numpy() if array.dtype == self.torch.bfloat16 else array.numpy()

    def address(self, array):
        return array.data_ptr()


class Jax:
    def __init__(self):
        self.jax = pytest.importorskip("jax")
        self.names = [name for name in NAMES if name not in ("f64", "i64", "u64", "complex128")]

    def make(self, values):
        return self.jax.numpy.asarray(values)

    def numpy(self, array):
        assert isinstance(array, self.jax.Array)
        return np.asarray(array)

    def address(self, array):
        return array.unsafe_buffer_pointer()


class Mlx:
    def __init__(self):
        self.mlx = pytest.importorskip("mlx.core")
        self.names = [name for name in NAMES if name not in ("f64", "complex128")]

    def make(self, values):
        if values.dtype.name == "bfloat16":
            return self.mlx.array(np.asarray(values, np.float32)).astype(self.mlx.bfloat16)
        return self.mlx.array(values)

    def numpy(self, array):
        assert isinstance(array, self.mlx.array)
        return np.array(array.astype(self.mlx.float32)) if array.dtype == self.mlx.bfloat16 else np.array(array)

    def address(self, array):
        return _ringlet.View(array).address


FRAMEWORKS = {"torch": Torch, "jax": Jax, "mlx": Mlx}


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    return FRAMEWORKS[request.param]()


@pytest.fixture
def alone():
    with ringlet.Group() as group:
        yield group


def same(framework, got, wanted):
    values = framework.numpy(got)
    assert values.shape == wanted.shape
    np.testing.assert_array_equal(values, wanted.astype(values.dtype))


def test_kinds_and_values(framework, alone):
    for name in framework.names:
        for shape in SHAPES:
            values = random_array(arrays.numpy_dtype(name), shape, 3)
            mine = framework.make(values)
            assert _ringlet.View(arrays.kind_of(mine).source(mine)).dtype == name
            result = alone.all_sum(mine)
            assert result.dtype == mine.dtype
            same(framework, result, values)
            same(framework, alone.all_gather(mine), np.atleast_1d(values))
            if name != "bool":
                same(framework, alone.broadcast(mine), values)


def test_nothing_is_copied_on_the_way_in(framework):
    mine = framework.make(np.arange(1000, dtype=np.float32))
    view = _ringlet.View(mine)
    assert view.address == framework.address(mine)


def test_results_are_aligned(framework, alone):
    if isinstance(framework, Mlx):
        pytest.skip("MLX chooses its memory by itself")
    for size in (1, 5, 1000):
        assert framework.address(alone.all_sum(framework.make(np.ones(size, np.float32)))) % 64 == 0


def test_strides(framework, alone):
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    mine = framework.make(values)
    same(framework, alone.all_sum(mine.T), values.T)
    same(framework, alone.all_sum(mine[1:3, ::2]), values[1:3, ::2])


def test_in_place(framework, alone):
    mine = framework.make(np.ones(3, np.float32))
    if isinstance(framework, Torch):
        version = mine._version
        assert alone.all_sum_(mine) is mine
        assert mine._version > version
    else:
        with pytest.raises(ringlet.InvalidArgument, match="never changed in place"):
            alone.all_sum_(mine)


def test_torch_traps(alone):
    torch = pytest.importorskip("torch")
    parameter = torch.nn.Parameter(torch.ones(3))
    result = alone.all_sum(parameter)
    assert type(result) is torch.Tensor and not result.requires_grad
    same(Torch(), alone.all_sum(torch.tensor([1 + 2j]).conj()), np.array([1 - 2j], np.complex64))
    with pytest.raises(ringlet.InvalidArgument, match="conjugate"):
        alone.all_sum_(torch.tensor([1 + 2j]).conj())
    with pytest.raises(ringlet.InvalidArgument, match="'meta'"):
        alone.all_sum(torch.ones(3, device="meta"))
    with pytest.raises(ringlet.InvalidArgument, match="share memory"):
        alone.all_sum_(torch.ones(1).expand(3))
    for call in (alone.all_sum, alone.all_sum_):
        with pytest.raises(TypeError, match=r"a Linear is no array; dict\(model.named_parameters\(\)\)"):
            call(torch.nn.Linear(2, 1))
        with pytest.raises(TypeError, match="a dtype is no array"):
            call(torch.float32)
    with pytest.raises(TypeError, match="'net': a Linear is no array"):
        ringlet.average_gradients({"net": torch.nn.Linear(2, 1)}, alone)


@on_ranks(2)
def test_on_ranks(group):
    """Of the frameworks that are here; what they add to one rank's tests is that the results come from elsewhere."""
    for make in FRAMEWORKS.values():
        try:
            framework = make()
        except pytest.skip.Exception:
            continue
        for name in framework.names:
            parts = [random_array(arrays.numpy_dtype(name), (5, 3), rank) for rank in range(2)]
            mine, other = framework.make(parts[group.rank()]), 1 - group.rank()
            same(
                framework,
                mine if name.startswith("complex") else group.all_max(mine),
                parts[group.rank()] if name.startswith("complex") else np.maximum(*parts),
            )
            same(framework, group.all_gather(mine), np.concatenate(parts))
            same(framework, group.broadcast(mine, 1), parts[1])
            work = group.send_async(mine, other)
            same(framework, group.recv_like(mine, other), parts[other])
            work.wait()
            if not isinstance(framework, Jax):
                work = group.send_async(mine, other)
                same(framework, group.recv((5, 3), mine.dtype, other), parts[other])
                work.wait()


def test_trees_keep_their_kinds(framework, alone):
    tree = {"w": [framework.make(np.full((3, 2), 2, np.float32))], "b": framework.make(np.ones(4, np.float16))}
    average = ringlet.average_gradients(tree, alone)
    same(framework, average["w"][0], np.full((3, 2), 2))
    assert average["b"].dtype == tree["b"].dtype
    after = ringlet.SGD(0.5).apply_gradients(average, tree)
    same(framework, after["w"][0], np.full((3, 2), 1))
    same(framework, ringlet.fsdp_apply_gradients(average, tree, ringlet.SGD(0.5), alone)["b"], np.full(4, 0.5))
    shard = ringlet.FullyShard(alone)
    shard.add("module", tree)
    same(framework, shard.forward(0)["w"][0], np.full((3, 2), 2))
    if isinstance(framework, Torch):
        assert ringlet.average_gradients_(tree, alone) is tree
        ringlet.SGD(0.5).apply_gradients_(average, tree)
        same(framework, tree["b"], np.full(4, 0.5))
    else:
        with pytest.raises(ringlet.InvalidArgument, match="never changed in place"):
            ringlet.SGD(0.5).apply_gradients_(average, tree)


def test_outer_trainer(framework, alone):
    """It changes parameters in place. A group of one with an outer rate of 1 and no momentum goes where its inner steps go."""
    tree = {"w": [framework.make(np.full((3, 2), 2, np.float32))], "b": framework.make(np.ones(4, np.float32))}
    options = {"inner_steps": 2, "learning_rate": 1, "momentum": 0}
    if not isinstance(framework, Torch):
        with pytest.raises(ringlet.InvalidArgument, match="never changed in place"):
            ringlet.OuterTrainer(alone, tree, **options)
        return
    tree["b"].requires_grad_()
    trainer = ringlet.OuterTrainer(alone, tree, **options)

    def inner(step):
        with framework.torch.no_grad():
            tree["w"][0] += 1
            tree["b"] -= 1
        return framework.torch.tensor(3)

    trainer.run(inner, steps=4)
    for values in (tree, trainer.shared_parameters()):
        same(framework, values["w"][0], np.full((3, 2), 6))
        same(framework, values["b"].detach(), np.full(4, -3))
    assert tree["b"].requires_grad and not trainer.shared_parameters()["b"].requires_grad
