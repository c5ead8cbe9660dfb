"""What a call costs through torch, beside gloo in the same run: torchrun --nproc-per-node 2 torch_overhead.py

Prints for each size the median time of an all_reduce over gloo, and those over Ringlet as a ratio to it; then the same of a training
step of a model of 10 million parameters by DistributedDataParallel. Each has a tensor of its own, as it would in a program, since Ringlet
gathers those into huge pages which it gets again and again."""

import statistics
import time

import torch
import torch.distributed as dist

import ringlet.torch  # before torch 2.14 the back end is known by this alone

ROUNDS = 15

torch.set_num_threads(1)
dist.init_process_group("gloo")
ringlet_group = dist.new_group(backend="ringlet")


def seconds_of(call, count):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


for count, elements in ((200, 1), (200, 1024), (60, 1 << 16), (20, 1 << 18), (5, 4 << 20), (2, 16 << 20)):
    of_gloo, of_ringlet = torch.zeros(elements), torch.zeros(elements)
    ways = {
        "gloo": lambda: dist.all_reduce(of_gloo),
        "ringlet": lambda: dist.all_reduce(of_ringlet, group=ringlet_group),
        "gloo, future": lambda: dist.all_reduce(of_gloo, async_op=True).get_future().wait(),
        "ringlet, future": lambda: dist.all_reduce(of_ringlet, group=ringlet_group, async_op=True).get_future().wait(),
    }
    times = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            times[name].append(seconds_of(call, count))
    if dist.get_rank() == 0:
        median = {name: statistics.median(measured) for name, measured in times.items()}
        ratios = ", ".join(f"{name} {took / median['gloo']:.2f}" for name, took in median.items() if name != "gloo")
        print(f"{elements * 4:>9} B  gloo {median['gloo'] * 1e6:.0f} us; as ratios to it: {ratios}", flush=True)

inputs = torch.randn(8, 1024)
steps = {}
for name, group in (("gloo", None), ("ringlet", ringlet_group)):
    layers = [layer for _ in range(10) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), process_group=group)
    steps[name] = lambda model=model: model(inputs).sum().backward()
    steps[name]()
times = {name: [] for name in steps}
for _ in range(ROUNDS):
    for name, step in steps.items():
        times[name].append(seconds_of(step, 2))
if dist.get_rank() == 0:
    median = {name: statistics.median(measured) for name, measured in times.items()}
    print(
        f"DDP step, 10 M parameters: gloo {median['gloo'] * 1e3:.1f} ms, ringlet {median['ringlet'] / median['gloo']:.2f} of it", flush=True
    )
dist.barrier()
dist.destroy_process_group()
