#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/rendezvous/meeting.hpp"
#include "native/setting.hpp"
#include "transport/uv/interface_list.hpp"

namespace ringlet::native {

/// The settings for where a rank listens and which addresses others are told.
struct ReachSettings {
  std::optional<Setting> listen;      // host[:port]
  std::optional<Setting> advertise;   // host[:port],...
  std::optional<Setting> interfaces;  // eth0,!docker0
};

/// Returns the entries between commas, without empty ones.
std::vector<std::string> split_list(std::string_view text);

/// Parses a host with or without a port: "10.0.0.7", "10.0.0.7:5000", "::1" or "[::1]:5000". Without one the port is 0. Throws
/// `InvalidArgument` with the setting.
Address parse_host(const Setting& setting, std::string_view text);

/// Decides where a rank of a world with a coordinator listens and which addresses it offers, and puts them into `meeting`. `all` are this
/// machine's interfaces; all usable ones are offered, but none where the coordinator is on the loopback, since all ranks are on this
/// machine then. Throws `InvalidArgument` with the setting and the interfaces that there are.
void make_reachable(const ReachSettings& settings, const std::vector<uv::ListedInterface>& all, int rank, MeetingOptions& meeting);

/// The hosts at which a rank listens that meets the others like this: for listeners with other ports than the meeting's own.
std::vector<std::string> listening_hosts(const MeetingOptions& meeting, int rank);

/// Makes `meeting` that of a later world, which has its coordinator at this address. The rank listens at `hosts`, at ports that the system
/// chooses, and offers nothing else. Throws like make_reachable().
void meet_at(const Address& coordinator, const ReachSettings& settings, const std::vector<uv::ListedInterface>& all,
             const std::vector<std::string>& hosts, int rank, MeetingOptions& meeting);

}  // namespace ringlet::native
