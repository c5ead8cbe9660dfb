"""What a call costs from Python where its caller waits for it: ringlet launch -n 2 -- python numpy_overhead.py

Prints for each size the median time of an all_sum that waits, and that of one that is started and then waited for."""

import statistics
import time

import numpy as np

import ringlet

ROUNDS = 15


def seconds_of(world, call, count):
    world.barrier()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


world = ringlet.init()
for count, elements in ((500, 1), (200, 1 << 14), (20, 1 << 20)):
    values = np.zeros(elements, np.float32)
    ways = {
        "waits": lambda: world.all_sum_(values),
        "starts, then waits": lambda: world.all_sum_async_(values).wait(),
    }
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            times[name].append(seconds_of(world, call, count))
    if world.rank() == 0:
        medians = ", ".join(f"{name} {statistics.median(measured) * 1e6:.1f} us" for name, measured in times.items())
        print(f"{elements * 4:>9} B  {medians}", flush=True)
