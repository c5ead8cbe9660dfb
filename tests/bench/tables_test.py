"""The floors and the tables of bench/compare, against numbers worked out by hand."""

import pathlib
import tempfile
import unittest

import tables
from networks import Loopback, NetworkError, ShapedHosts, bytes_per_second

BARE = {"half_round_trip_us": 3.0, "bytes_per_us": 10_000.0}


class Floors(unittest.TestCase):
    def limit(self, network, size, operation="all_reduce", cores=2):
        return tables.Limits(BARE, cores).of(network, operation, len(network.addresses), size)

    def test_small_sizes_are_bound_by_messages_in_a_row(self):
        self.assertEqual(self.limit(Loopback(2), 4), ("round trips", 3.0))
        # Two rounds of messages, and four ranks take turns on two cores.
        self.assertEqual(self.limit(Loopback(4), 4), ("round trips", 12.0))
        self.assertEqual(self.limit(Loopback(4), 4, cores=4), ("round trips", 6.0))

    def test_large_sizes_on_the_loopback_are_bound_by_copying(self):
        # Each of two ranks sends the size once: 2 * 1,000,000 bytes at 10,000 a microsecond.
        self.assertEqual(self.limit(Loopback(2), 1_000_000), ("copying", 200.0))
        self.assertEqual(self.limit(Loopback(2), 1_000_000, "all_gather"), ("copying", 100.0))

    def test_equal_hosts_are_bound_by_their_links(self):
        what, floor = self.limit(ShapedHosts(["1gbit"] * 4), 1_000_000)
        self.assertEqual((what, round(floor)), ("the line", 12_000))  # 1.5 MB at 125 MB/s

    def test_a_slow_host_has_to_carry_the_size_once(self):
        what, floor = self.limit(ShapedHosts(["1gbit", "1gbit", "1gbit", "100mbit"]), 1_000_000)
        self.assertEqual((what, round(floor)), ("the line", 80_000))

    def test_ranks_of_one_host_need_the_line_once(self):
        what, floor = self.limit(ShapedHosts(["1gbit"] * 2, 2), 1_000_000)
        self.assertEqual((what, round(floor)), ("the line", 8_000))

    def test_rates(self):
        self.assertEqual(bytes_per_second("250mbit"), 31_250_000)
        for wrong in ("fast", "0gbit", "-1mbit", "1.5gbit"):
            with self.assertRaises(NetworkError):
                bytes_per_second(wrong)


class Tables(unittest.TestCase):
    def measured(self):
        measured = tables.Measured()
        for library, times in (("ringlet", (6.0, 5.0, 90.0)), ("gloo", (7.0, 8.0, 4.0))):
            for time in times:
                row = {"ranks": 2, "bytes": 4, "median_us": time, "version": "1"}
                measured.add("loopback", "all_reduce", library, row)
        return measured

    def test_a_cell_is_the_median_of_the_rounds_and_the_shortest_is_bold(self):
        medians = self.measured().medians(("loopback", "all_reduce", 2))
        self.assertEqual(medians, {4: {"ringlet": 6.0, "gloo": 7.0}})
        table = tables.table(medians, {"ringlet": "Ringlet", "mpich": "MPICH", "gloo": "Gloo"}, lambda _: ("round trips", 3.0))
        self.assertEqual(table.splitlines()[0], "| bytes | Ringlet | Gloo | floor, its share of Ringlet's time |")
        self.assertEqual(table.splitlines()[2], "| 4 B | **6.0** | 7.0 | round trips, 50 % |")

    def test_the_floor_is_that_of_tcp_and_may_be_missed(self):
        medians = {4: {"ringlet": 2.0, "ringlet-tcp": 4.0}, 1024: {"ringlet": 3.0, "ringlet-tcp": 2.5}}
        table = tables.table(medians, {"ringlet": "Ringlet", "ringlet-tcp": "Ringlet over TCP only"}, lambda _: ("round trips", 3.0))
        self.assertIn("| floor over TCP, its share of Ringlet's time over TCP |", table.splitlines()[0])
        self.assertEqual(table.splitlines()[2], "| 4 B | **2.0** | 4.0 | round trips, 75 % |")
        self.assertEqual(table.splitlines()[3], "| 1 KiB | 3.0 | **2.5** | round trips, 120 % |")

    def test_numbers_are_written_for_people(self):
        self.assertEqual([tables.time_text(time) for time in (4.04, 123.4, 1234.5, 52_712.0)], ["4.0", "123", "1,234", "52,700"])
        self.assertEqual([tables.size_text(size) for size in (4, 65536, 4 << 20)], ["4 B", "64 KiB", "4 MiB"])

    def test_only_what_stands_between_the_marks_is_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "document.md"
            path.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
            tables.write_between(path, "new")
            self.assertEqual(path.read_text(), f"before\n{tables.BEGIN}\n\nnew\n\n{tables.END}\nafter\n")
            path.write_text("no marks")
            with self.assertRaises(ValueError):
                tables.write_between(path, "new")


if __name__ == "__main__":
    unittest.main()
