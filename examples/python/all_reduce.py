"""Each rank contributes its numbers, and all ranks get the sums.

Run it with: ringlet launch -n 4 -- python3 all_reduce.py [path of libringlet]"""

import array
import ctypes
import ctypes.util
import sys

RINGLET_SUM, RINGLET_F32 = 0, 11


class Tensor(ctypes.Structure):  # ringlet_tensor
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


library = sys.argv[1] if len(sys.argv) > 1 else ctypes.util.find_library("ringlet")
if library is None:
    sys.exit("all_reduce: libringlet is not found; install it, or give its path")
ringlet = ctypes.CDLL(library)
ringlet.ringlet_error_message.restype = ctypes.c_char_p


def check(code):
    if code != 0:
        sys.exit("all_reduce: " + ringlet.ringlet_error_message().decode())


group, rank, size = ctypes.c_void_p(), ctypes.c_int32(), ctypes.c_int32()
check(ringlet.ringlet_init(None, ctypes.byref(group)))
check(ringlet.ringlet_group_rank(group, ctypes.byref(rank)))
check(ringlet.ringlet_group_size(group, ctypes.byref(size)))

values = array.array("f", [rank.value, 1, 0.5])  # with NumPy: values.ctypes.data, values.shape
address, count = values.buffer_info()
tensor = Tensor(address, RINGLET_F32, 1, (ctypes.c_int64 * 1)(count), None)
check(ringlet.ringlet_all_reduce(group, RINGLET_SUM, ctypes.byref(tensor), ctypes.byref(tensor), None))
print(f"rank {rank.value} of {size.value}: the sums of all ranks are {values.tolist()}", flush=True)
ringlet.ringlet_group_free(group)
