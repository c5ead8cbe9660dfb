#pragma once

#include <memory>

#include "core/rendezvous/knocking.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

/// Knocks at the doors `config.join`, on a loop of its own. As long as it lives, the group knows that this process does. Any thread.
class Knocker {
 public:
  Knocker(const WorldConfig& config, Duration timeout);
  ~Knocker();
  Knocker(const Knocker&) = delete;
  Knocker& operator=(const Knocker&) = delete;

  /// Waits until the group admits this process. Throws where it has not in time, or refuses it.
  wire::Ticket await_ticket();

 private:
  LoopDriver driver_;
  std::unique_ptr<UvNetwork> network_;
  std::unique_ptr<TokenAuthenticator> authenticator_;
  std::unique_ptr<Knocking> knocking_;
  DoneFlag answered_;
  Interruption interruption_;
  Result<wire::Ticket> answer_{Status{Errc::cancelled, "no answer"}};
};

/// Joins a group that runs, at one of the doors `config.join`: knocks until the group admits this process, and returns the group of the
/// world in which it is a rank. Throws `Timeout` after the time that `config` has for meeting the others.
std::shared_ptr<SharedGroup> join_group(WorldConfig config, WorldStart start);

/// For a rank that the others went on without: joins them again by one of the doors of this world's other ranks. Throws like init().
std::shared_ptr<SharedGroup> rejoin(SharedGroup& group);

/// For the native ranks of an elastic group that is to begin with so many guests: waits until these have come, and returns the group with
/// them. Throws `Timeout` on all ranks where they have not in time.
std::shared_ptr<SharedGroup> await_first_guests(std::shared_ptr<SharedGroup> group, int guests, Duration timeout);

}  // namespace ringlet::native
