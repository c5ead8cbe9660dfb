#include "tools/prediction/network_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace ringlet::prediction {

namespace {

constexpr std::size_t kMostDigits = 20;
constexpr double kLeastRate = 1e3, kMostRate = 1e13;
constexpr double kPayloadShare = 1448.0 / 1538;  // of a full TCP segment in an Ethernet frame and the gap behind it

using Unit = std::pair<std::string_view, double>;
constexpr Unit kCountUnits[] = {{"", 1}, {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"t", 1e12}};
constexpr Unit kTimeUnits[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
constexpr Unit kRateUnits[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};

Status invalid_text(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

/// Reads a number with one of the units behind it, in letters of either case; nothing if it is none.
std::optional<double> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  // std::from_chars reads no doubles on macOS yet, and other functions heed the locale.
  double number = 0, place = 1;
  std::size_t at = 0, digits = 0;
  for (bool behind_point = false; at < text.size() && at <= kMostDigits; ++at) {
    if (text[at] == '.' && !std::exchange(behind_point, true)) continue;
    if (text[at] < '0' || text[at] > '9') break;
    ++digits;
    if (behind_point) place /= 10;
    number = number * 10 + (text[at] - '0');
  }
  if (digits == 0) return std::nullopt;
  number *= place;
  const std::string unit = lower(text.substr(at));
  for (const auto& [name, factor] : units)
    if (unit == name) return number * factor;
  return std::nullopt;
}

Result<double> parse_rate(std::string_view text) {
  const auto rate = parse_with_unit(text, kRateUnits);
  if (!rate) return invalid_text(fmt::format("'{}' is no rate; write it as 1gbit, 250mbit or 800kbit", text));
  if (*rate < kLeastRate || *rate > kMostRate) return invalid_text(fmt::format("'{}' is out of range; give 1kbit to 10000gbit", text));
  return *rate;
}

std::optional<int> parse_whole(std::string_view text, int most) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0 || number > most) return std::nullopt;
  return number;
}

}  // namespace

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> entries;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    entries.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

Result<std::uint64_t> parse_count(std::string_view text) {
  constexpr double kMost = 1e13;
  const auto number = parse_with_unit(text, kCountUnits);
  if (!number) return invalid_text(fmt::format("'{}' is no number; write it as 100M, 1.5B or 124000000", text));
  if (*number < 1 || *number > kMost) return invalid_text(fmt::format("'{}' is out of range; give 1 to 10T", text));
  return static_cast<std::uint64_t>(std::llround(*number));
}

Result<double> parse_nanoseconds(std::string_view text) {
  constexpr double kDay = 86'400e9;
  const auto number = parse_with_unit(text, kTimeUnits);
  if (!number) return invalid_text(fmt::format("'{}' is no time; write it as 0.5s, 500ms or 80us", text));
  if (*number > kDay) return invalid_text(fmt::format("'{}' is out of range; give a day at most", text));
  return *number;
}

Result<std::vector<double>> parse_network(std::string_view text) {
  std::vector<double> rates;
  for (const std::string_view entry : split_at_commas(text)) {
    const std::size_t cross = std::min(entry.find('x'), entry.size());
    const auto ranks = parse_whole(entry.substr(0, cross), kMostRanks);
    if (cross == entry.size() || !ranks || *ranks == 0)
      return invalid_text(fmt::format("'{}' is no network; write it as 4x1gbit, or as 3x1gbit,1x250mbit", entry));
    const Result<double> rate = parse_rate(entry.substr(cross + 1));
    if (!rate.ok()) return rate.status();
    rates.insert(rates.end(), static_cast<std::size_t>(*ranks), rate.value());
  }
  if (rates.size() < 2 || rates.size() > kMostRanks)
    return invalid_text(fmt::format("{} {}; give 2 to {}", rates.size(), rates.size() == 1 ? "line" : "lines", kMostRanks));
  return rates;
}

Status apply_links(std::string_view text, std::vector<double>& rates) {
  const bool holds = rates.empty();
  for (const std::string_view entry : split_at_commas(text)) {
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    const auto rank = parse_whole(entry.substr(0, colon), kMostRanks - 1);
    if (colon == entry.size() || !rank)
      return invalid_text(fmt::format("'{}' is no link; write it as NUMBER:RATE, such as 3:250mbit", entry));
    const Result<double> rate = parse_rate(entry.substr(colon + 1));
    if (!rate.ok()) return rate.status();
    const auto place = static_cast<std::size_t>(*rank);
    if (holds && place < rates.size()) return invalid_text(fmt::format("'{}' comes after {}; give them in order", entry, rates.size() - 1));
    if (holds && rates.empty() && place > 0) return invalid_text(fmt::format("'{}' is the first one; begin with 0", entry));
    if (!holds && place >= rates.size())
      return invalid_text(fmt::format("'{}': of {} lines the last is {}", entry, rates.size(), rates.size() - 1));
    if (place >= rates.size()) rates.resize(place + 1, rates.empty() ? 0 : rates.back());
    rates[place] = rate.value();
  }
  if (rates.size() < 2) return invalid_text("one machine has nobody to talk to; name the last one, too, such as 0:1gbit,3:1gbit");
  return {};
}

Result<RankNetwork> network_of_rates(const std::vector<double>& rates, double exchange_ns, int ranks_per_machine) {
  constexpr PortCost kMemory{5'000, 0.25, 0.25, 1'000};
  if (rates.size() * static_cast<std::size_t>(ranks_per_machine) > kMostRanks)
    return invalid_text(fmt::format("{} machines with {} ranks each are more than {} ranks", rates.size(), ranks_per_machine, kMostRanks));
  RankNetwork network{{}, {}, kMemory};
  for (std::size_t machine = 0; machine < rates.size(); ++machine) {
    const double per_byte = 8e9 / (rates[machine] * kPayloadShare);
    for (int rank = 0; rank < ranks_per_machine; ++rank) {
      network.ports.push_back(port_cost(exchange_ns, per_byte, per_byte));
      if (ranks_per_machine > 1) network.machines.push_back(static_cast<int>(machine));
    }
  }
  return network;
}

}  // namespace ringlet::prediction
