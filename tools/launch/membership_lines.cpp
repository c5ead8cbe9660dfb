#include "tools/launch/membership_lines.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

namespace ringlet::launch {

namespace {

constexpr std::size_t kMaxMembershipBytes = 64 * 1024;
constexpr double kMaxMilliseconds = 1e12;

}  // namespace

std::optional<job::Membership> MembershipLines::parse(const std::string& line) {
  try {
    const nlohmann::json told = nlohmann::json::parse(line);
    if (const auto lost = told.find("ended_by_loss_of"); lost != told.end()) {
      if (const auto rank = lost->get<std::uint32_t>(); rank < job::kMaxWorldSize) lost_ = rank;
      return std::nullopt;
    }
    job::Membership membership;
    membership.epoch = told.at("epoch").get<std::uint32_t>();
    membership.lineage = std::strtoull(told.at("lineage").get<std::string>().c_str(), nullptr, 16);
    membership.world_size = told.at("size").get<std::uint32_t>();
    membership.door = told.at("door").get<std::string>();
    if (const auto& change = told.at("change"); change.is_object()) {
      membership.joined = change.at("joined").get<std::uint32_t>();
      membership.lost = change.at("lost").get<std::vector<std::uint32_t>>();
      membership.cause = change.at("cause").is_string() ? change.at("cause").get<std::string>() : "";
      membership.pause_us = static_cast<std::uint64_t>(std::clamp(change.at("milliseconds").get<double>(), 0.0, kMaxMilliseconds) * 1000);
    }
    if (membership.lost.size() > job::kMaxWorldSize) return std::nullopt;
    return membership;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<job::Membership> MembershipLines::feed(std::string_view bytes) {
  std::vector<job::Membership> memberships;
  for (const char letter : bytes) {
    if (letter != '\n') {
      too_long_ = too_long_ || line_.size() == kMaxMembershipBytes;
      if (!too_long_) line_ += letter;
      continue;
    }
    if (!too_long_)
      if (auto membership = parse(line_)) memberships.push_back(std::move(*membership));
    line_.clear();
    too_long_ = false;
  }
  return memberships;
}

}  // namespace ringlet::launch
