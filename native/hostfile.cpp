#include "native/hostfile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/refuse.hpp"

namespace ringlet::native {

std::vector<std::vector<Address>> parse_hostfile(const std::string& path, std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    refuse(
        fmt::format("hostfile '{}': {}; it must be a list with one list of \"host:port\" per rank, such as [[\"127.0.0.1:5000\"], "
                    "[\"127.0.0.1:5001\"]]",
                    path, why));
  };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) wrong("not valid JSON");
  if (!json.is_array() || json.empty()) wrong("not a list of ranks");
  if (json.size() > static_cast<std::size_t>(kMaxWorldSize))
    wrong(fmt::format("{} ranks, at most {} are possible", json.size(), kMaxWorldSize));
  std::vector<std::vector<Address>> roster;
  for (const auto& row : json) {
    const std::size_t rank = roster.size();
    if (!row.is_array() || row.empty()) wrong(fmt::format("rank {} has no list of addresses", rank));
    std::vector<Address> addresses;
    for (const auto& entry : row) {
      if (!entry.is_string()) wrong(fmt::format("rank {} has an address that is not a string", rank));
      const auto address = parse_address(entry.get<std::string>());
      if (!address.ok()) wrong(fmt::format("rank {}: {}", rank, address.status().text()));
      if (address.value().port == 0) wrong(fmt::format("rank {}: '{}' needs a port from 1 to 65535", rank, entry.get<std::string>()));
      addresses.push_back(address.value());
    }
    roster.push_back(std::move(addresses));
  }
  for (std::size_t rank = 0; rank < roster.size(); ++rank)
    for (std::size_t other = 0; other < rank; ++other)
      for (const auto& address : roster[rank])
        if (std::find(roster[other].begin(), roster[other].end(), address) != roster[other].end())
          wrong(fmt::format("ranks {} and {} have the same address {}", other, rank, to_string(address)));
  return roster;
}

}  // namespace ringlet::native
