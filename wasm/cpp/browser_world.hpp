#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/alive_guard.hpp"
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
  Duration timeout = Duration::seconds(60);  // until it has a seat; rank 0 decides how long to wait for the others
  Duration operation_timeout = WorldOptions{}.operation_timeout;
};

/// A world in a browser: the core's world, with a network of its own. Either it joins as a guest, or it has one rank and needs no joining.
class BrowserWorld {
 public:
  using OnJoined = std::function<void(const Status&)>;

  /// `handle` is the number by which the host knows this world.
  explicit BrowserWorld(int32_t handle) : handle_(handle), network_(loop_of_module()) {}
  BrowserWorld(const BrowserWorld&) = delete;
  BrowserWorld& operator=(const BrowserWorld&) = delete;

  /// Makes the core's world without meeting anyone.
  void make_core(const WorldOptions& options);
  /// `on_joined` runs once, from the loop.
  void join(const JoinOptions& options, OnJoined on_joined);
  /// Leaves the world, or ends joining, as `cancelled`. May be called once. `on_closed` runs once, from the loop, and may destroy the
  /// world.
  void close(std::function<void()> on_closed);

  /// Returns null before joining; while joining, the world as far as it exists.
  World* core() { return core_.get(); }
  BrowserNetwork& network() { return network_; }
  bool closing() const { return closing_; }
  /// Of an elastic group's world, once this side has a seat there; otherwise 0.
  ///@{
  std::uint32_t epoch() const { return epoch_; }
  std::uint64_t lineage() const { return lineage_; }
  ///@}

 private:
  static BrowserLoop& loop_of_module();
  void on_seat(Result<GuestEntry::Entry>& seated);
  void meet(const Address& coordinator, Duration timeout);
  void tell_seat(int present);
  void finish_joining(const Status& status);
  void tell_failures();

  const int32_t handle_;
  BrowserNetwork network_;
  JoinOptions options_;
  OnJoined on_joined_;  // null once it has run
  std::unique_ptr<BrowserAuthenticator> authenticator_;
  std::unique_ptr<GuestEntry> entry_;  // in an elastic group until this guest is in
  std::unique_ptr<World> core_;
  std::unique_ptr<Meeting> meeting_;  // must be destroyed before the world
  bool elastic_ = false;
  std::uint32_t epoch_ = 0;
  std::uint64_t lineage_ = 0;
  bool closing_ = false;
  AliveGuard alive_;
};

/// Returns the options that are the same for every world in a browser.
WorldOptions world_options();

}  // namespace ringlet::browser
