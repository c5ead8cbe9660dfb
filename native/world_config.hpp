#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/elastic/epochs.hpp"
#include "core/engine/parts_watch.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/meeting.hpp"
#include "native/door.hpp"
#include "native/given_descriptor.hpp"
#include "native/reachability.hpp"
#include "native/trace/trace_settings.hpp"
#include "native/web_door.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::native {

/// Sockets that a program or whoever started it has opened, by their numbers here. init() makes duplicates.
struct GivenSockets {
  std::optional<int> listener{};                // rank 0: listens at the coordinator's address
  std::optional<int> door{};                    // listens, in place of DoorOptions' hosts and port
  std::optional<int> page_socket{};             // listens for guests of an elastic world; each rank of this machine may have it
  std::optional<int> page{};                    // a file: WebFiles
  std::optional<GivenDescriptor> presence{};    // likewise
  std::optional<GivenDescriptor> membership{};  // for MembershipLog
};

/// How to meet the other ranks. init() makes it from its options and the environment.
struct WorldConfig {
  WorldOptions options;
  MeetingOptions meeting;
  std::string token{};                      // empty: none
  std::optional<bool> encrypt{};            // whether links are encrypted; unset: where there is a token
  CipherSet ciphers = preferred_ciphers();  // that encrypted links may have
  bool peer_memory = true;                  // whether ranks of this machine may read each other's memory
  TraceSettings trace{};
  bool status = true;  // whether this user's programs may ask for the state (status_socket.hpp)
  GivenSockets given{};
  WebConfig web{};                                     // used where there are guests
  DelayHandler on_delay{};                             // unset: warnings go to stderr
  std::function<void(const std::string&)> on_parts{};  // on rank 0, when parts have changed; unset: it goes to stderr
  PartsWatchOptions parts_watch{};                     // where parts follow what links carry
  std::function<bool()> interrupted{};                 // asked by callers that wait
  OnSplit on_split = OnSplit::fork;                    // of an elastic world

  // Of an elastic world, for those that join it (joining.hpp, growth.hpp).
  ReachSettings reach{};
  std::vector<std::string> hosts{"127.0.0.1"};  // where this rank listens in worlds that follow by growth
  DoorOptions door_options{};
  std::vector<Address> join{};  // doors of the group that this process is to join
  int first_guests = 0;         // that are waited for before the group begins

  bool encrypts() const { return encrypt.value_or(!token.empty()); }
};

}  // namespace ringlet::native
