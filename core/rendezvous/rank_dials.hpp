#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/link_race.hpp"
#include "core/rendezvous/link_table.hpp"
#include "core/rendezvous/planned_links.hpp"
#include "core/rendezvous/retry_pause.hpp"

namespace ringlet {

struct RankDialOptions {
  Duration relay_timeout;                    // how long a relay may take to answer, which it does once the other guest has dialled it too
  std::vector<wire::Endpoint> interfaces{};  // this machine's addresses
  bool only_these_interfaces = false;        // whether links to ranks with several addresses may leave by these only
  bool coordinator_listens = false;          // whether rank 0 has certainly begun to listen, so that it has gone if nobody does
};

/// The second phase of a meeting: dials other ranks until each has been reached, and gives the sessions to the world. A rank that dialling
/// again cannot reach makes the world fail. Belongs to the loop's thread.
class RankDials {
 public:
  /// All arguments outlive it. `on_linked` runs from the loop when a race has confirmed a link in `links`.
  RankDials(EventLoop& loop, Dialler& dialler, World& world, LinkTable& links, ClosingSessions& closing, RankDialOptions options,
            std::function<void()> on_linked);

  /// Asks the coordinator, which is rank 0, for the roster.
  void join(const Address& coordinator, wire::Join join);
  /// Dials a link of the world with this number. `name` is this rank's, for people, where it is a guest.
  void connect(PlannedLink link, std::uint64_t world_id, const std::string& name);
  /// Gives up all dials that are under way.
  void stop();
  /// The reasons why ranks have not been reached so far: "; reason; reason", or nothing.
  std::string complaints() const;

 private:
  /// The attempts to reach a rank that has one address, or through a relay.
  struct Attempt {
    Address address{};
    LinkRequest request{};
    wire::ControlMessage first_message{};
    RetryPause pause{};
    RefusalsInRow refusals;
    Status last_failure{};
  };

  void race(int peer, std::vector<wire::Endpoint> targets, std::uint64_t world_id);
  void start(int peer, Attempt attempt);
  void dial(int peer);
  void on_dialled(int peer, Result<std::unique_ptr<Link>> link);
  void on_dial_failed(int peer, const Status& status);
  void on_race_ended(int peer, Result<LinkRace::Winner> outcome);
  void fail(int peer, const Status& status);

  EventLoop& loop_;
  Dialler& dialler_;
  World& world_;
  LinkTable& links_;
  ClosingSessions& closing_;
  const RankDialOptions options_;
  std::function<void()> on_linked_;
  std::map<int, Attempt> attempts_;                 // by rank, until it is reached
  std::map<int, std::unique_ptr<LinkRace>> races_;  // by rank
  AliveGuard guard_;
};

}  // namespace ringlet
