"""Tables and plots of what was measured, and what limits each row."""

import statistics

BEGIN = "<!-- bench/compare writes from here -->"
END = "<!-- to here -->"


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def time_text(microseconds):
    if microseconds < 100:
        return f"{microseconds:.1f}"
    return f"{microseconds:,.0f}" if microseconds < 10_000 else f"{float(f'{microseconds:.3g}'):,.0f}"


def bytes_of_busiest(operation, ranks, size):
    """What the busiest link carries one way, at least: nccl-tests' factor of the bus bandwidth."""
    return size * (ranks - 1) / ranks * (2 if operation == "all_reduce" else 1)


class Measured:
    """Medians of the rounds, by (network, operation, ranks), size and library."""

    def __init__(self):
        self.times = {}
        self.versions = {}

    def add(self, network, operation, library, row):
        by_size = self.times.setdefault((network, operation, row["ranks"]), {})
        by_size.setdefault(row["bytes"], {}).setdefault(library, []).append(row["median_us"])
        self.versions[library] = row["version"]

    def medians(self, setting):
        return {
            size: {library: statistics.median(times) for library, times in sorted(of_library.items())}
            for size, of_library in sorted(self.times[setting].items())
        }


class Limits:
    """What a row cannot be faster than: on a network the slowest link's rate, on the loopback the bare link between two processes that
    link_bench measures. Ranks that outnumber the cores share them."""

    def __init__(self, bare, cores):
        self.bare = bare  # {"half_round_trip_us", "bytes_per_us"}
        self.cores = cores

    def of(self, network, operation, ranks, size):
        """(what, microseconds) of the greater of the two floors."""
        messages = (ranks - 1).bit_length() * max(ranks / self.cores, 1)
        latency = messages * self.bare["half_round_trip_us"]
        if network.rates:
            hosts = len(network.rates)
            each = bytes_of_busiest(operation, hosts if network.per_host > 1 else ranks, size)
            # A slow host need own no part: it sends its values once and gets the sums once.
            carried = max(min(each, size) / (min(network.rates) / 1e6), each / (max(network.rates) / 1e6))
            return max(("the line", carried), ("round trips", latency), key=lambda floor: floor[1])
        total = ranks * bytes_of_busiest(operation, ranks, size)
        # One bare link keeps two cores busy.
        carried = total / self.bare["bytes_per_us"] / max(self.cores // 2, 1)
        return max(("copying", carried), ("round trips", latency), key=lambda floor: floor[1])


def table(medians, titles, limit_of):
    """`limit_of` says of a size what limits it. The last column is the share of Ringlet's time that this floor would take alone."""
    columns = [library for library in titles if any(library in row for row in medians.values())]
    # The bare link is TCP's: what goes through memory is not bound by it.
    limited, over = ("ringlet-tcp", " over TCP") if "ringlet-tcp" in columns else ("ringlet", "")
    lines = ["| bytes | " + " | ".join(titles[library] for library in columns) + f" | floor{over}, its share of Ringlet's time{over} |"]
    lines.append("| --- " * (len(columns) + 2) + "|")
    for size, row in medians.items():
        best = min(row.values())
        cells = []
        for library in columns:
            text = time_text(row[library]) if library in row else ""
            cells.append(f"**{text}**" if row.get(library) == best else text)
        what, floor = limit_of(size)
        share = f"{what}, {100 * floor / row[limited]:.0f} %" if limited in row else what
        lines.append(f"| {size_text(size)} | " + " | ".join(cells) + f" | {share} |")
    return "\n".join(lines)


def plot(path, title, medians, titles):
    """Times over sizes, both logarithmic, as SVG. Raises ImportError where matplotlib is not here."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "ringlet", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for library, name in titles.items():
        points = [(size, row[library]) for size, row in medians.items() if library in row]
        if points:
            axes.plot(*zip(*points), label=name, marker="o", markersize=3, linewidth=2.2 if library == "ringlet" else 1.2)
    axes.set(xscale="log", yscale="log", title=title, xlabel="bytes of the buffer", ylabel="microseconds, median")
    sizes = list(medians)
    axes.set_xticks(sizes, [size_text(size) for size in sizes], rotation=45, ha="right")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    path.write_text("".join(line.rstrip() + "\n" for line in path.read_text().splitlines()))


def write_between(path, text):
    """Replaces what stands between the two marks of a document."""
    document = path.read_text()
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise ValueError(f"{path} needs the lines '{BEGIN}' and '{END}' once, in this order")
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
