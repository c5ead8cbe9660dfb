"""Random arrays for tests, the same on all ranks that give the same seed."""

import ml_dtypes
import numpy as np

REAL = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]
DTYPES = [
    np.bool_,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    *REAL,
    *COMPLEX,
]
SHAPES = [(), (0,), (1,), (7,), (64,), (3, 5), (0, 4), (2, 3, 4), (1001,)]


def random_array(dtype, shape, seed):
    """Small whole numbers, so that every order of additions gives the same."""
    values = np.random.default_rng(seed).integers(0, 5, size=shape)
    if np.dtype(dtype) == np.bool_:
        return np.asarray(values > 2)
    if dtype in COMPLEX:
        return np.asarray(values + 1j * (values % 3)).astype(dtype)
    return np.asarray(values).astype(dtype)


def layouts(array):
    """The same values in other memory: transposed, with gaps, reversed."""
    yield array
    if array.ndim >= 2:
        yield np.asarray(array.T.copy()).T
    if array.ndim >= 1 and array.size:
        spread = np.zeros((array.shape[0] * 2, *array.shape[1:]), array.dtype)
        spread[::2] = array
        yield spread[::2]
        yield array[::-1].copy()[::-1]


def equal(got, wanted):
    assert type(got) is np.ndarray, type(got)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got.dtype, got.shape, wanted.dtype, wanted.shape)
    assert got.tobytes() == np.ascontiguousarray(wanted).tobytes(), (got, wanted)
