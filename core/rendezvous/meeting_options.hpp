#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/port_range.hpp"
#include "core/base/time.hpp"
#include "core/ports/shortcut.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct MeetingOptions {
  /// Where rank 0 listens and all others dial. Where it is not set, `roster` says where each rank listens.
  std::optional<Address> coordinator;
  /// On rank 0 the coordinator's port may be 0. This is then called with the port at which the rank listens, before anybody has dialled it.
  std::function<void(std::uint16_t port)> on_listening{};
  /// The coordinator has been listening since before this rank was told of it: if nobody answers there, the meeting has failed.
  bool coordinator_listens = false;
  /// Each rank's addresses, all of which it listens on.
  std::vector<std::vector<Address>> roster;
  /// With a coordinator: where this rank listens. On rank 0 port 0 means the coordinator's port. Where it is not set, rank 0 listens at the
  /// coordinator's address, and other ranks where they can be reached.
  std::optional<Address> listen_at;
  /// With a coordinator: the ports at which this rank may listen where it chooses one, beyond the loopback.
  PortRange ports{};
  /// Further hosts at which this rank listens at the same port; those where that fails are left out.
  std::vector<std::string> also_at{};
  /// With a coordinator: the addresses that the other ranks are told, the likeliest first. Port 0 stands for the port at which this rank
  /// listens at that host; where it does not listen there, the address is not told.
  std::vector<wire::Endpoint> endpoints{};
  /// Whether the others are told only `endpoints`, and not the address at which rank 0 sees this rank.
  bool only_endpoints = false;
  /// In an elastic world: where processes knock that are to join this rank's group, which all native ranks are told. Port 0: nowhere.
  Address door{};
  /// This machine's addresses, which show by which interface a link leaves.
  std::vector<wire::Endpoint> interfaces{};
  /// Whether links to ranks with several addresses may leave by these interfaces only.
  bool only_these_interfaces = false;
  Duration timeout = Duration::seconds(60);
  /// Distinguishes this world from others: with a coordinator a random number that rank 0 chooses, otherwise a hash of the roster.
  std::uint64_t world_id = 0;
  /// A guest's name, for people.
  std::string name{};
  /// Called on a guest while it waits, with the number of ranks that are there.
  std::function<void(int present)> on_present{};
  /// Called on rank 0 while it waits for guests, with the names of those that are there, by seat, whenever they may have changed.
  std::function<void(const std::vector<std::string>& names)> on_guests{};
  /// Called on rank 0, and on ranks that do not reach it, with what the ranks still wait for, when that takes long and whenever it has
  /// changed since.
  std::function<void(const std::string& text)> on_waiting{};
  /// The shortcut that this rank asks for on the links that it dials, or null. It outlives the meeting.
  Shortcut* shortcut = nullptr;
};

}  // namespace ringlet
