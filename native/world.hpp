#pragma once

#include <memory>
#include <optional>
#include <ringlet/error.hpp>

#include "core/engine/world.hpp"
#include "core/rendezvous/meeting.hpp"
#include "native/progress.hpp"
#include "native/status/status_socket.hpp"
#include "native/web_door.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/local/memory_shortcut.hpp"
#include "transport/local/peer_memory.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::native {

/// How to meet the other ranks: what init() makes of options and environment.
struct WorldConfig {
  WorldOptions options;
  MeetingOptions meeting;
  std::string token{};                      // empty: none
  std::optional<bool> encrypt{};            // what goes over the links; unset: where there is a token
  bool peer_memory = true;                  // ranks of this machine may read each other's memory
  bool status = true;                       // other programs of this user may ask for the state (status_socket.hpp)
  std::optional<int> listening_descriptor;  // rank 0: listens at the coordinator's address; the world closes it
  WebConfig web{};                          // where there are guests
  DelayHandler on_delay{};                  // unset: warnings go to stderr
};

/// A world as a native program holds it: the core's with a loop, a network and the threads' rules. It lives as long as any of its groups
/// (shared_group.hpp). Any thread.
class World {
 public:
  /// Meets the other ranks; throws the reason if they do not come together.
  explicit World(const WorldConfig& config);
  /// Takes leave of the others; waits at most the close timeout.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Progress& progress() { return progress_; }
  /// Only while holding the loop.
  ringlet::World& core() { return *core_; }

 private:
  void meet(const WorldConfig& config);
  void open_status(std::uint64_t world_id);
  void close();

  const WorldOptions options_;
  Progress progress_;
  std::unique_ptr<UvNetwork> network_;
  std::unique_ptr<TokenAuthenticator> authenticator_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<Shortcut> shortcut_;
  std::unique_ptr<IncomingLinks> incoming_;
  std::unique_ptr<web::WebFront> web_front_;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<ringlet::World> core_;
  std::unique_ptr<StatusSocket> status_;
};

}  // namespace ringlet::native
