#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/engine/world.hpp"
#include "core/rendezvous/guest_entry.hpp"
#include "core/rendezvous/meeting.hpp"
#include "wasm/cpp/browser_authenticator.hpp"
#include "wasm/cpp/browser_network.hpp"

namespace ringlet::browser {

/// How to join a world.
struct JoinOptions {
  Address coordinator;  // rank 0
  std::string token;
  bool encrypt = false;
  std::string name;                          // for people
  Duration timeout = Duration::seconds(60);  // until it has a seat; rank 0 says how long to wait for the others
  Duration operation_timeout = WorldOptions{}.operation_timeout;
};

/// A world as a browser holds it: the core's, with a network of its own. First it joins, as a guest; or it is of one rank, and there.
class BrowserWorld {
 public:
  using OnJoined = std::function<void(const Status&)>;

  /// The host hears of this world under `handle`.
  explicit BrowserWorld(int32_t handle) : handle_(handle), network_(loop_of_module()) {}
  BrowserWorld(const BrowserWorld&) = delete;
  BrowserWorld& operator=(const BrowserWorld&) = delete;

  /// Makes the core's world without meeting anyone.
  void make_core(const WorldOptions& options);
  /// `on_joined` runs once, from the loop.
  void join(const JoinOptions& options, OnJoined on_joined);
  /// Takes leave of the others, or ends joining, as `cancelled`. `on_closed` runs once, from the loop; the world may go then. Once.
  void close(std::function<void()> on_closed);

  /// Null until it has joined, or as far as it has come.
  World* core() { return core_.get(); }
  BrowserNetwork& network() { return network_; }
  bool closing() const { return closing_; }

 private:
  static BrowserLoop& loop_of_module();
  void on_seat(Result<GuestEntry::Entry>& seated);
  void meet(Duration timeout);
  void tell_seat(int present);
  void finish_joining(const Status& status);
  void tell_failures();

  const int32_t handle_;
  BrowserNetwork network_;
  JoinOptions options_;
  OnJoined on_joined_;  // until it has run
  std::unique_ptr<BrowserAuthenticator> authenticator_;
  std::unique_ptr<GuestEntry> entry_;
  std::unique_ptr<World> core_;
  std::unique_ptr<Meeting> meeting_;  // goes before the world
  bool closing_ = false;
};

/// What is the same for every world of a browser's.
WorldOptions world_options();

}  // namespace ringlet::browser
