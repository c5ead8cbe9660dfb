#!/usr/bin/env python3
"""Compares Ringlet with the libraries that are installed here: the same sizes, in turns, each result checked."""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT / "bench"))  # namespaces.py

import tables  # noqa: E402
from libraries import LIBRARIES, Missing, rows_of  # noqa: E402
from networks import Loopback, NetworkError, ShapedHosts, bytes_per_second  # noqa: E402

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "": 1}
OPERATIONS = ["all_reduce", "reduce_scatter", "all_gather"]

FOOTER = """Each round starts the ranks of one library after the other, so that what else the machine does meets all of them; a table has the median of the
rounds' medians. Networks are "loopback", or hosts made of network namespaces (root, on Linux): "4x1gbit" are four hosts at 1 Gbit/s,
"1gbit,1gbit,250mbit" three, and "2x2x1gbit" two hosts with two ranks on each.

Examples:
  scripts/compare --ranks 2 --sizes 4,64KiB,1MiB --rounds 1
  scripts/compare --network loopback --network 4x1gbit --write

Exit codes: 0; 1 if a result is wrong, or Ringlet itself cannot be measured; 2 a mistake on the command line; 130 after Ctrl-C."""


def numbers(text):
    try:
        values = [int(word) for word in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < 2:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers of ranks from 2, such as 2,3,4")
    return values


def sizes(text):
    values = []
    for word in text.split(","):
        match = re.fullmatch(r"(\d+)(B|KiB|MiB|)", word.strip())
        if not match or int(match[1]) * UNITS[match[2]] < 4:
            raise argparse.ArgumentTypeError(f"'{word}' is not a size from 4 bytes, such as 4, 64KiB or 1MiB")
        values.append(int(match[1]) * UNITS[match[2]] // 4 * 4)
    return values


def network(text):
    """How a network of that description is made for a number of ranks."""
    if text == "loopback":
        return lambda ranks: Loopback(ranks)
    match = re.fullmatch(r"(?:(\d+)x)?(?:(\d+)x)?(\w+(?:,\w+)*)", text)
    try:
        rates = match[3].split(",") if match else [text]
        for rate in rates:
            bytes_per_second(rate)
    except NetworkError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no network: {error}") from None
    hosts, per_host = int(match[1] or 1), int(match[2] or 1)
    if not 2 <= hosts * len(rates) <= 250 or not 1 <= per_host <= 16:
        raise argparse.ArgumentTypeError(f"'{text}' is no network of 2 to 250 hosts with 1 to 16 ranks on each")
    return lambda _: ShapedHosts(rates * hosts, per_host)


def bare(text):
    match = re.fullmatch(r"([\d.]+),([\d.]+)", text)
    if not match or not float(match[1]) * float(match[2]) > 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not two positive numbers, such as 3.4,9.0")
    return {"half_round_trip_us": float(match[1]), "bytes_per_us": float(match[2]) * 1e3}


def libraries(text):
    for key in text.split(","):
        if key not in LIBRARIES:
            raise argparse.ArgumentTypeError(f"'{key}' is not one of {', '.join(LIBRARIES)}")
    return text.split(",")


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/compare", description=__doc__, epilog=FOOTER, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", type=network, action="append", help="where the ranks run; may be repeated (loopback)")
    parser.add_argument("--ranks", type=numbers, default=[2, 3, 4], help="on the loopback (2,3,4)")
    parser.add_argument("--sizes", type=sizes, help="(4,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB)")
    parser.add_argument("--operation", choices=OPERATIONS, action="append", help="may be repeated (all_reduce)")
    parser.add_argument("--libraries", type=libraries, help=f"of {', '.join(LIBRARIES)} (all that are here)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each library is started (3)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of measuring for each size and round (0.3)")
    parser.add_argument("--python", type=pathlib.Path, action="append", help="an interpreter with torch or mlx; may be repeated")
    parser.add_argument("--rows", type=pathlib.Path, help="also write each measured row to this file, as a line of JSON")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md, and plots beside its images")
    parser.add_argument(
        "--bare-link", type=bare, metavar="US,GB/S", help="half a round trip and the rate of a bare link, for the floors (measured)"
    )
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help=argparse.SUPPRESS)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error(f"--rounds {options.rounds} and --seconds {options.seconds} have to be positive")
    options.programs = options.build.parent / "compare"
    options.network = options.network or [network("loopback")]
    options.operation = options.operation or ["all_reduce"]
    options.sizes = options.sizes or sizes("4,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB")
    found = sorted((ROOT / "build" / "python").glob("test-cp3*/bin/python"))
    options.python = options.python or [*found, pathlib.Path(sys.executable)]
    return options


def progress(text):
    print(text, file=sys.stderr, flush=True)


def is_ringlet(key):
    """Whether it is a column of Ringlet's, over whatever links."""
    return key.startswith("ringlet")


def prepared(options):
    """The libraries that are here, by key."""
    chosen = {}
    for key in options.libraries or LIBRARIES:
        library = LIBRARIES[key]()
        try:
            library.prepare(options)
            chosen[key] = library
        except Missing as reason:
            progress(f"compare: without {library.title}: {reason}")
    return chosen


def measure_bare_link(options):
    """Of two processes over loopback TCP, by link_bench."""
    printed = subprocess.run([options.build / "bin" / "link_bench"], capture_output=True, text=True, check=True).stdout
    round_trip = re.search(r"^64 bytes there and back: ([\d.]+) us", printed, re.M)
    rates = re.findall(r"^stream .*: ([\d.]+) GB/s", printed, re.M)
    return {"half_round_trip_us": float(round_trip[1]) / 2, "bytes_per_us": min(map(float, rates)) * 1e3}


class Comparison:
    """All that is measured, and how far it is."""

    def __init__(self, options, chosen, places):
        self.options = options
        self.chosen = chosen
        self.measured = tables.Measured()
        self.rows_file = options.rows.open("w") if options.rows else None
        self.steps = options.rounds * len(places) * len(options.operation)
        self.done, self.began = 0, time.monotonic()

    def run(self, place):
        """All rounds on one network."""
        lost = set()
        for round_number in range(self.options.rounds):
            for operation in self.options.operation:
                for key in self.in_turn(round_number, place):
                    if key not in lost and not self.run_library(key, place, operation, round_number):
                        lost.add(key)
                self.done += 1
                left = (time.monotonic() - self.began) / self.done * (self.steps - self.done)
                progress(
                    f"compare: {self.done} of {self.steps}: {operation}, {len(place.addresses)} ranks, {place.name}; {left:.0f} s left"
                )

    def in_turn(self, round_number, place):
        """The libraries that serve there; each round begins with another one."""
        cores = os.cpu_count() or 1
        keys = [key for key, library in self.chosen.items() if library.shaped or not place.rates]
        keys = [key for key in keys if not (self.chosen[key].spins and len(place.addresses) > cores)]
        turn = round_number % len(keys)
        return keys[turn:] + keys[:turn]

    def run_library(self, key, place, operation, round_number):
        library = self.chosen[key]
        try:
            printed = library.run(place, [operation, str(self.options.seconds), *map(str, self.options.sizes)])
        except Missing as reason:
            progress(f"compare: {library.title}, {len(place.addresses)} ranks, {place.name}: {reason}")
            if is_ringlet(key):
                sys.exit(1)
            return False
        for row in rows_of(printed):
            self.measured.add(place.name, operation, key, row)
            if self.rows_file:
                line = {"network": place.name, "column": key, "round": round_number, **row}
                print(json.dumps(line), file=self.rows_file, flush=True)
        return True


def report(options, chosen, measured, limits, settings):
    """The tables, as Markdown, and with --write the plots."""
    titles = {key: library.title for key, library in chosen.items()}
    versions = ", ".join(
        f"{titles[key]} {version}" for key, version in measured.versions.items() if key in ("openmpi-tcp", "mpich", "torch", "mlx")
    )
    parts = [
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores; f32, medians of {options.rounds} rounds in turns, in µs; "
        f"{versions or 'no other library'}. The shortest time of a row is bold."
    ]
    for place in settings:
        for operation in options.operation:
            setting = (place.name, operation, len(place.addresses))
            if setting not in measured.times:
                continue
            medians = measured.medians(setting)
            title = f"{operation}, {len(place.addresses)} ranks, {place.name}"
            parts.append(f"**{title}**")
            parts.append(tables.table(medians, titles, lambda size: limits.of(place, operation, len(place.addresses), size)))
            if options.write:
                image = ROOT / "docs" / "images" / f"compare-{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}.svg"
                tables.plot(image, title, medians, titles)
                parts.append(f"![{title}](images/{image.name})")
    return "\n\n".join(parts)


def main():
    options = arguments()
    if options.write:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            sys.exit("compare: --write draws with matplotlib, which is not here; scripts/setup --peers installs it")
    chosen = prepared(options)
    if not any(map(is_ringlet, chosen)):
        sys.exit("compare: Ringlet itself cannot be measured; --libraries, if given, has to name ringlet or ringlet-tcp")
    limits = tables.Limits(options.bare_link or measure_bare_link(options), os.cpu_count() or 1)
    places = {}
    for make in options.network:
        for place in map(make, options.ranks):
            places[place.name, len(place.addresses)] = place  # that of hosts has the ranks of its hosts, and so comes once
    comparison = Comparison(options, chosen, places)
    try:
        for place in places.values():
            with place:
                comparison.run(place)
    except NetworkError as error:
        sys.exit(f"compare: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    text = report(options, chosen, comparison.measured, limits, places.values())
    print(text)
    if options.write:
        tables.write_between(ROOT / "docs" / "performance.md", text)


if __name__ == "__main__":
    main()
