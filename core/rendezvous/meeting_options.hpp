#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/time.hpp"
#include "core/ports/shortcut.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct MeetingOptions {
  /// Where rank 0 listens and all others dial. Unset: `roster` says where each rank listens.
  std::optional<Address> coordinator;
  /// Each rank's addresses, all of which it listens on.
  std::vector<std::vector<Address>> roster;
  /// With a coordinator: where this rank listens; port 0 is on rank 0 the coordinator's. Unset: rank 0 at the coordinator's address, the
  /// others where it can be reached.
  std::optional<Address> listen_at;
  /// Further hosts where this rank listens at the same port, as far as that works.
  std::vector<std::string> also_at{};
  /// With a coordinator: the addresses that the other ranks are told, the likeliest first. Port 0 stands for the port at which this rank
  /// listens at that host; where it does not listen there, the address is not told.
  std::vector<wire::Endpoint> endpoints{};
  /// The address at which rank 0 sees this rank is not told to the others.
  bool only_endpoints = false;
  /// This machine's addresses, to tell by which interface a link leaves.
  std::vector<wire::Endpoint> interfaces{};
  /// Where ranks have several addresses, links leave by these interfaces only.
  bool only_these_interfaces = false;
  Duration timeout = Duration::seconds(60);
  /// Tells this world from others: random on rank 0 of a coordinator, a hash of the roster otherwise.
  std::uint64_t world_id = 0;
  /// A guest's name, for people.
  std::string name{};
  /// Called on a guest while it waits, with the number of ranks that are there.
  std::function<void(int present)> on_present{};
  /// Called on rank 0 while it waits for guests, with the names of those that are there, by seat, whenever they may have changed.
  std::function<void(const std::vector<std::string>& names)> on_guests{};
  /// The shortcut that this rank asks for on the links that it dials; null: none. Outlives the meeting.
  Shortcut* shortcut = nullptr;
};

}  // namespace ringlet
