"""How each library's Python program measures: as measure.hpp does it, which says how."""

import json
import sys
import time

import numpy


class Request:
    def __init__(self):
        if len(sys.argv) < 4:
            raise SystemExit(f"usage: {sys.argv[0]} OPERATION SECONDS BYTES...")
        self.operation = sys.argv[1]
        self.seconds = float(sys.argv[2])
        self.sizes = [int(size) for size in sys.argv[3:]]


def contribution(rank, count):
    return ((numpy.arange(count) % 5 + 1) * (rank + 1)).astype(numpy.float32)


def sum_of_contributions(ranks, count):
    return ((numpy.arange(count) % 5 + 1) * (ranks * (ranks + 1) // 2)).astype(numpy.float32)


def run(library, request):
    """Measures all sizes. `library` has name, version, rank, ranks, barrier(), largest(value), and for each operation that it has a method
    of that name: it takes a rank's numpy array, and returns a function that calls the library and one that returns the last result."""
    if not hasattr(library, request.operation):
        return
    for size in request.sizes:
        count = size // 4
        part = count // library.ranks
        if request.operation != "all_reduce" and part == 0:
            continue
        whole = count if request.operation == "all_reduce" else part * library.ranks
        sums = sum_of_contributions(library.ranks, whole)
        if request.operation == "all_gather":
            given = contribution(library.rank, part)
            expected = numpy.concatenate([contribution(rank, part) for rank in range(library.ranks)])
        else:
            given = contribution(library.rank, whole)
            expected = sums if request.operation == "all_reduce" else sums[part * library.rank : part * (library.rank + 1)]
        call, result = getattr(library, request.operation)(given)
        call()
        right = numpy.array_equal(result(), expected)
        given[:] = 0  # repeated sums in place stay finite
        measure(library, request, size, right, call)


# In the first calls with a buffer libraries register it, or gather it into huge pages.
WARM_UP_CALLS = 8


def measure(library, request, bytes_, right, call):
    for _ in range(WARM_UP_CALLS):
        call()
    library.barrier()
    probes = 20 if bytes_ <= 65536 else 2
    begin = time.perf_counter()
    for _ in range(probes):
        call()
    estimate = library.largest((time.perf_counter() - begin) / probes)
    calls = min(max(int(0.010 / estimate), 1), 2000)
    batches = min(max(int(request.seconds / (estimate * calls)), 5), 60)
    times = []
    for _ in range(batches):
        library.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(library.largest((time.perf_counter() - begin) / calls))
    times.sort()
    all_right = library.largest(0.0 if right else 1.0) == 0.0
    if library.rank == 0:
        row = {
            "library": library.name,
            "version": library.version,
            "operation": request.operation,
            "ranks": library.ranks,
            "bytes": bytes_,
            "median_us": round(times[len(times) // 2] * 1e6, 3),
            "least_us": round(times[0] * 1e6, 3),
            "right": all_right,
        }
        print(json.dumps(row), flush=True)
