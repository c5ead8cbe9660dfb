#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "tools/prediction/measured_links.hpp"

// Numbers on the command line. What cannot be read is `invalid_argument`, with the value and how it may be written.
namespace ringlet::prediction {

/// More ranks than this are not predicted.
inline constexpr int kMostRanks = 1024;

/// The entries between commas, empty ones too, which are mistakes to tell of. They are part of `text`.
std::vector<std::string_view> split_at_commas(std::string_view text);

/// A number of parameters or of tokens, such as "100M", "1.5B" or "124000000", from 1 to 10 trillion.
Result<std::uint64_t> parse_count(std::string_view text);

/// A time such as "0.5s", "500ms", "80us" or, in seconds, "0.5". Not negative; a day at most.
Result<double> parse_nanoseconds(std::string_view text);

/// The rates of machines' lines in bits per second: "4x1gbit", or "3x1gbit,1x250mbit" where they differ.
Result<std::vector<double>> parse_network(std::string_view text);

/// The rates of single machines' lines: "0:1gbit,3:250mbit". Those of `rates` are changed. If it is empty, the first machine is 0, and one
/// that is not named has the rate of the one before it.
Status apply_links(std::string_view text, std::vector<double>& rates);

/// The network of machines with lines of these rates, alike in both directions, with so many ranks on each, and this time for an exchange
/// of a few bytes. On Ethernet 94 % of a line's bits are payload. Ranks of one machine move 4 GB/s.
Result<RankNetwork> network_of_rates(const std::vector<double>& rates, double exchange_ns, int ranks_per_machine = 1);

}  // namespace ringlet::prediction
