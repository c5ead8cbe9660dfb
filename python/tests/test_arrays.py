"""Arrays of NumPy: what goes in, without a copy, and what comes out."""

import array
import ctypes
import gc
import multiprocessing
import sys

import ml_dtypes
import numpy as np
import pytest
from ranks import on_ranks
from samples import DTYPES, SHAPES, equal, layouts, random_array

import ringlet
from ringlet import _ringlet, arrays


@pytest.fixture
def alone():
    with ringlet.Group() as group:
        yield group


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_views_are_the_memory_itself(dtype):
    for shape in SHAPES:
        for values in layouts(random_array(dtype, shape, 1)):
            for write in (False, True):
                view = _ringlet.View(values, write=write)
                assert arrays.numpy_dtype(view.dtype) == values.dtype
                assert view.shape == values.shape
                assert view.contiguous == values.flags.c_contiguous
                if values.size:
                    assert view.address == values.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_results_are_new_and_aligned(alone, dtype):
    for shape in SHAPES:
        values = random_array(dtype, shape, 2)
        result = alone.all_sum(values)
        equal(result, values)
        assert not np.shares_memory(result, values)
        assert result.flags.writeable and result.flags.c_contiguous
        assert result.size == 0 or result.__array_interface__["data"][0] % 64 == 0


def test_numbers(alone):
    for number, dtype in [
        (True, "bool"),
        (3, "int64"),
        (2.5, "float64"),
        (1j, "complex128"),
        (np.complex64(1j), "complex64"),
        (np.float32(3), "float32"),
    ]:
        result = alone.all_max(number)
        assert result.dtype == dtype and result.shape == () and result == number
    with pytest.raises(ringlet.InvalidArgument, match="number cannot be changed"):
        alone.all_sum_(np.float32(3))


def test_buffers(alone):
    floats = array.array("f", [1, 2, 3])
    equal(alone.all_sum(floats), np.array([1, 2, 3], np.float32))
    assert alone.all_sum_(floats) is floats
    equal(alone.all_sum(b"abc"), np.frombuffer(b"abc", np.uint8))
    with pytest.raises(ringlet.InvalidArgument, match="a bytes cannot be written to"):
        alone.all_sum_(b"abc")


def test_buffers_without_strides(alone):
    """ctypes leaves them out."""
    rows = ((ctypes.c_double * 3) * 2)((1, 2, 3), (4, 5, 6))
    for buffer in ((ctypes.c_float * 3)(1, 2, 3), multiprocessing.Array("i", [1, 2, 3], lock=False), rows, ctypes.c_int64(7)):
        wanted = np.array(buffer)
        equal(alone.all_sum(buffer), wanted)
        assert alone.all_sum_(buffer) is buffer
        assert alone.broadcast_(buffer, 0) is buffer
        equal(np.array(buffer), wanted)
    view = _ringlet.View(rows, write=True)
    assert (view.shape, view.address, view.contiguous) == ((2, 3), ctypes.addressof(rows), True)
    with pytest.raises(ringlet.InvalidArgument, match="a c_float_be_Array_3 .*dtype|no array"):
        alone.all_sum((ctypes.c_float.__ctype_be__ * 3)(1, 2, 3))


class Exporting:
    """Another library's array, whose export fails."""

    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **_):
        raise self.error

    def __dlpack_device__(self):
        return 1, 0


class Elsewhere:
    @property
    def __array_struct__(self):
        raise RuntimeError("the tensor is on another device")


def test_the_reasons_of_exporters(alone):
    released = memoryview(b"abc")
    released.release()
    for values, text in [
        (Exporting(BufferError("a sparse tensor; call to_dense() first")), "BufferError: a sparse tensor; call to_dense.. first"),
        (Exporting(TypeError("no such dtype")), "TypeError: no such dtype"),
        (Elsewhere(), "RuntimeError: the tensor is on another device"),
        (released, "ValueError: operation forbidden on released memoryview object"),
    ]:
        name = type(values).__name__
        with pytest.raises(ringlet.InvalidArgument, match=f"^a {name} is no array in the CPU's memory: {text}"):
            alone.all_sum(values)
        with pytest.raises(ringlet.InvalidArgument, match=f"^a {name} cannot be written to: {text}"):
            alone.all_sum_(values)
    with pytest.raises(KeyboardInterrupt):
        alone.all_sum(Exporting(KeyboardInterrupt()))


def test_what_is_read_only_is_only_read(alone):
    values = np.ones(3)
    values.flags.writeable = False
    equal(alone.all_sum(values), np.ones(3))
    for call in (alone.all_sum_, alone.broadcast_, lambda x: alone.recv_(x, 0)):
        with pytest.raises(ringlet.InvalidArgument, match="read-only"):
            call(values)
    shared = np.broadcast_to(np.float32(2), (3, 2))
    equal(alone.all_sum(shared), np.full((3, 2), 2, np.float32))


def test_what_shares_memory_is_only_read(alone):
    values = np.arange(4.0)
    for shape, strides in [((3,), (0,)), ((3, 2), (8, 8)), ((2, 3), (16, 8)), ((3, 2), (8, 0))]:
        shared = np.lib.stride_tricks.as_strided(values, shape, strides)
        equal(alone.all_sum(shared), shared.copy())
        equal(ringlet.SGD(1.0).apply_gradients([shared], [np.zeros(shape)])[0], 0 - shared)
        for call in (alone.all_sum_, alone.broadcast_, lambda x: ringlet.average_gradients_([x], alone)):
            with pytest.raises(ringlet.InvalidArgument, match=r"shape \([23].* with strides of \(.*share memory.* write to a copy"):
                call(shared)
    equal(values, np.arange(4.0))
    apart = np.zeros((4, 6))[::2, ::-3].T
    assert alone.all_sum_(apart) is apart


def test_what_is_no_array_of_ours(alone):
    for values, text in [
        (np.zeros(2, ">f4"), "byte order"),
        (np.zeros(2, "U3"), "no such dtype"),
        (np.zeros(2, "M8[s]"), "no such dtype"),
        (np.zeros(2, object), "'object'.*no such dtype"),
        (np.zeros(2, ml_dtypes.float8_e4m3fn), "float8_e4m3fn.*no such dtype"),
        (np.zeros(2, [("a", "u1"), ("b", "f4")])["b"], "multiples|aligned"),
        (np.zeros(9, np.uint8)[1:].view(np.float32), "aligned"),
        (np.zeros((1,) * 9), "axes"),
        (np.ma.masked_greater(np.arange(3.0), 1), "lose its mask"),
    ]:
        with pytest.raises(ringlet.InvalidArgument, match=text):
            alone.all_sum(values)
    for values in ([1, 2], (1, 2), {"a": 1}, "text", None, object(), {1}, range(3), (value for value in [1])):
        with pytest.raises(TypeError, match="no array"):
            alone.all_sum(values)


def test_names_of_dtypes():
    assert _ringlet.dtypes == [arrays.dtype_name(dtype) for dtype in DTYPES]
    for name, dtype in [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("bool", bool), ("u8", "uint8"), ("bf16", "bf16")]:
        assert arrays.dtype_name(dtype) == name
    with pytest.raises(ringlet.InvalidArgument, match="no dtype"):
        arrays.dtype_name(np.timedelta64)


@on_ranks(2)
def test_arrays_of_dropped_works_are_kept(group):
    """Freed memory would be given to the arrays that are made meanwhile, and the sums would be written there."""
    others = []
    for number in range(50):
        group.all_sum_async_(np.full(5000, number, np.float32))
        group.all_sum_async(np.full(5000, number, np.float32), stream=1)
        gc.collect()
        others.append(np.full(5000, -1, np.float32))
    group.barrier()
    group.barrier(stream=1)
    assert all((other == -1).all() for other in others)


@on_ranks(2)
def test_arrays_are_let_go_when_works_have_ended(group):
    values = np.ones(1000)
    before = sys.getrefcount(values)
    work = group.all_sum_async_(values)
    assert sys.getrefcount(values) > before
    assert work.wait() is values
    del work
    assert sys.getrefcount(values) == before
    group.all_sum_async_(values)
    group.barrier()
    group.all_sum_async(np.ones(1)).wait()  # what has ended is looked for whenever something begins
    assert sys.getrefcount(values) == before
