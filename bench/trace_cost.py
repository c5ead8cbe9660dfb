#!/usr/bin/env python3
"""Measures what a trace costs: `ringlet bench` without and with --trace, in turns, each with ranks of its own on this machine.

  bench/trace_cost.py --ringlet build/release/bin/ringlet --ranks 2 --sizes 4,64KiB,1MiB,16MiB --rounds 7
"""

import argparse
import json
import statistics
import subprocess
import tempfile


def run(options, trace):
    """Returns the median time of each size, in microseconds."""
    command = [options.ringlet, "bench", "--ranks", str(options.ranks), "--op", options.op, "--sizes", options.sizes]
    command += ["--seconds", str(options.seconds), "--json"]
    done = subprocess.run(command + (["--trace", trace] if trace else []), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"trace_cost: {' '.join(command)} ended with code {done.returncode}: {done.stderr}")
    if trace and "lacks" in done.stderr:
        print(done.stderr.strip())
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if not rows or not all(row["checked"] for row in rows):
        raise SystemExit(f"trace_cost: no results, or wrong ones: {done.stdout}")
    return {row["bytes"]: row["median_us"] for row in rows}


def measure(options):
    times = {"off": {}, "on": {}}
    with tempfile.TemporaryDirectory() as directory:
        for round_number in range(options.rounds):
            # Each goes first in turn, since a machine may become slower while it is measured.
            for state in ("off", "on") if round_number % 2 == 0 else ("on", "off"):
                for size, median_us in run(options, f"{directory}/trace.json" if state == "on" else None).items():
                    times[state].setdefault(size, []).append(median_us)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringlet", default="ringlet", help="the command")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--op", default="all_reduce", help="as `ringlet bench --op`")
    parser.add_argument("--sizes", default="4,64KiB,1MiB,16MiB")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each size in each run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="one line of JSON per size")
    options = parser.parse_args()
    times = measure(options)
    if not options.json:
        print(f"{options.op}, {options.ranks} ranks, medians of {options.rounds} runs of each, in turns (the quickest and the slowest)")
        print(f"{'bytes':>10} {'without us':>26} {'with us':>26} {'ratio':>7}")
    for size, off in times["off"].items():
        on = times["on"][size]
        ratio = statistics.median(on) / statistics.median(off)
        if options.json:
            print(json.dumps({"op": options.op, "ranks": options.ranks, "bytes": size, "without_us": off, "with_us": on, "ratio": ratio}))
            continue
        texts = [f"{statistics.median(runs):.1f} ({min(runs):.1f} to {max(runs):.1f})" for runs in (off, on)]
        print(f"{size:>10} {texts[0]:>26} {texts[1]:>26} {ratio:>7.3f}")


if __name__ == "__main__":
    main()
