"""A rank in Python with ctypes alone: all-reduce in place, on bytes of the array module, and errors. `ringlet launch` starts it."""

import array
import ctypes
import sys
from ctypes import POINTER, byref, c_int32, c_int64, c_void_p

RINGLET_SUM, RINGLET_F32, RINGLET_F64 = 0, 11, 12
RINGLET_INVALID_ARGUMENT, RINGLET_MISMATCH = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("dtype", c_int32),
        ("axes", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    ]


def tensor_of(values, dtype):
    address, count = values.buffer_info()
    return Tensor(address, dtype, 1, (c_int64 * 1)(count), None)


def main():
    ringlet = ctypes.CDLL(sys.argv[1])
    ringlet.ringlet_error_message.restype = ctypes.c_char_p

    def ok(code):
        assert code == 0, ringlet.ringlet_error_message().decode()

    group, rank, size = c_void_p(), c_int32(), c_int32()
    ok(ringlet.ringlet_init(None, byref(group)))
    ok(ringlet.ringlet_group_rank(group, byref(rank)))
    ok(ringlet.ringlet_group_size(group, byref(size)))
    n, r = size.value, rank.value

    values = array.array("f", (r * 100 + i for i in range(1000)))
    tensor = tensor_of(values, RINGLET_F32)
    ok(ringlet.ringlet_all_reduce(group, RINGLET_SUM, byref(tensor), byref(tensor), None))
    assert list(values) == [n * (n - 1) / 2 * 100 + n * i for i in range(1000)]

    doubles, work = array.array("d", [r + 1]), c_void_p()
    tensor = tensor_of(doubles, RINGLET_F64)
    ok(ringlet.ringlet_all_mean_async(group, byref(tensor), byref(tensor), None, byref(work)))
    ok(ringlet.ringlet_work_wait(work))
    ringlet.ringlet_work_free(work)
    assert doubles[0] == (n + 1) / 2

    tensor.dtype = 99
    assert ringlet.ringlet_broadcast(group, byref(tensor), 0, None) == RINGLET_INVALID_ARGUMENT
    assert b"dtype number 99" in ringlet.ringlet_error_message()

    # Once one rank has left the barrier, every rank's earlier calls have ended; the others' mismatch may overtake the barrier itself.
    assert ringlet.ringlet_barrier(group, None) in (0, RINGLET_MISMATCH)
    other = tensor_of(array.array("d", [0] * (1 + r)), RINGLET_F64)
    assert ringlet.ringlet_all_mean(group, byref(other), byref(other), None) == RINGLET_MISMATCH
    assert b"all_reduce" in ringlet.ringlet_error_message()
    ringlet.ringlet_group_free(group)
    print(f"rank {r} of {n} is done")


main()
