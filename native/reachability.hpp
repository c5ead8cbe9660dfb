#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/rendezvous/meeting.hpp"
#include "native/setting.hpp"
#include "transport/uv/interface_list.hpp"

namespace ringlet::native {

/// What was said about where a rank listens and what others are told of it.
struct ReachSettings {
  std::optional<Setting> listen;      // host[:port]
  std::optional<Setting> advertise;   // host[:port],...
  std::optional<Setting> interfaces;  // eth0,!docker0
};

/// Entries between commas; empty ones are left out.
std::vector<std::string> split_list(std::string_view text);

/// "10.0.0.7", "10.0.0.7:5000", "::1", "[::1]:5000"; without a port it is 0. Throws `InvalidArgument` with the setting.
Address parse_host(const Setting& setting, std::string_view text);

/// Where a rank of a world with a coordinator listens and what it offers, of these interfaces of this machine: all usable ones, unless the
/// coordinator is on the loopback, as then all ranks are. Throws `InvalidArgument` with the setting and the interfaces that there are.
void make_reachable(const ReachSettings& settings, const std::vector<uv::ListedInterface>& all, int rank, MeetingOptions& meeting);

}  // namespace ringlet::native
