#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/port_range.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "core/rendezvous/knocks.hpp"
#include "core/rendezvous/listeners.hpp"
#include "native/loop_driver.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::native {

struct DoorOptions {
  std::vector<std::string> hosts{"127.0.0.1"};  // at least one; those behind the first that cannot be opened are left out
  std::uint16_t port = 0;                       // 0: one of `ports`, or any on the loopback
  PortRange ports{};
  int preferred = 0;              // which one of `ports` is tried first
  std::optional<int> descriptor;  // an inherited socket that listens, in place of hosts and port; the door closes it
  std::string shown_host{};       // where others reach it, for people; empty: the first host
};

/// The port at which processes knock that are to join the group of this rank (core/rendezvous/knocks.hpp), on a loop of its own. It
/// outlives the worlds of its rank, which hand it on. Any thread.
class Door {
 public:
  /// Throws where it cannot listen.
  Door(const DoorOptions& options, const std::string& token, bool encrypt);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Where to knock: "host:port".
  const std::string& address() const { return address_; }

  // See Knocks. It is closed at first. `on_gone` runs in the thread that turns the door's loop, and not any more once let_go() has
  // returned.
  void open();
  void shut();
  /// Costs next to nothing: trainers ask at each step.
  int waiting() const { return waiting_; }
  int choose(int most, std::function<void(const std::string& name)> on_gone);
  void send_tickets(const wire::Ticket& first);
  void let_go();

 private:
  void close() noexcept;

  LoopDriver driver_;
  std::string address_;
  std::atomic<int> waiting_{0};
  std::unique_ptr<UvNetwork> network_;
  std::unique_ptr<TokenAuthenticator> authenticator_;
  std::unique_ptr<IncomingLinks> incoming_;
  std::unique_ptr<Knocks> knocks_;
  std::unique_ptr<Listeners> listeners_;
};

}  // namespace ringlet::native
