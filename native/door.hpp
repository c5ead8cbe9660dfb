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
#include "native/presence.hpp"
#include "native/web_door.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/unique_fd.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::native {

struct DoorOptions {
  std::vector<std::string> hosts{"127.0.0.1"};  // at least one; those behind the first that cannot be opened are left out
  std::uint16_t port = 0;                       // 0: one of `ports`, or any on the loopback
  PortRange ports{};
  int preferred = 0;         // which one of `ports` is tried first
  std::string shown_host{};  // where others reach it, for people; empty: the first host
  WebConfig web{};           // for the guests that knock there
};

struct DoorSockets {
  UniqueFd listener{};  // listens, in place of the options' hosts and port
  UniqueFd page{};      // listens for guests; each rank of this machine may have it
  WebFiles web{};
};

/// The port at which processes knock that are to join the group of this rank (core/rendezvous/knocks.hpp), on a loop of its own. It
/// outlives the worlds of its rank, which hand it on. Any thread.
class Door {
 public:
  /// Throws where it cannot listen.
  Door(const DoorOptions& options, DoorSockets sockets, const std::string& token, bool encrypt, CipherSet ciphers);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Where to knock.
  const Address& address() const { return address_; }
  /// Serves the page from now on, and lets guests knock there, too, where this process has inherited the socket for it. One rank of the
  /// group does so, the lowest, so that a page's connections are all in one place. May be called again. shut() ends it.
  void serve_page();
  /// Another process serves the page, at this port: tabs that have it may knock here. To be called before open().
  void let_in_page_of(std::uint16_t port);
  /// The page's port; 0 where this process has none.
  std::uint16_t page_port() const { return page_port_; }

  // See Knocks. It is closed at first, to WebSockets as well. `on_gone` runs in the thread that turns the door's loop, and not any more
  // once let_go() has returned.
  void open();
  void shut();
  bool is_open();
  /// Costs next to nothing: trainers ask at each step.
  int waiting() const { return waiting_; }
  void expect_guests(int count);
  Knocks::Chosen choose(int most, std::function<void(const std::string& name)> on_gone);
  void send_tickets(const wire::Ticket& first);
  void let_go();
  /// How many guests knock, or are at the door for another reason; the process that started this one is told their names, until it is told
  /// that nobody is waited for any more.
  int guests() const { return guests_; }
  void end_presence();

 private:
  Status open_page();
  void let_in_web_sockets();
  void close() noexcept { driver_.destroy(page_listener_, listeners_, web_front_, incoming_, knocks_, network_, authenticator_); }

  LoopDriver driver_;
  Address address_;
  std::uint16_t page_port_ = 0;
  std::atomic<int> waiting_{0}, guests_{0};
  PresenceReport presence_;
  std::unique_ptr<UvNetwork> network_;
  std::unique_ptr<TokenAuthenticator> authenticator_;
  std::unique_ptr<IncomingLinks> incoming_;
  std::unique_ptr<Knocks> knocks_;
  std::unique_ptr<Listeners> listeners_;
  const UniqueFd page_socket_;
  web::PageBundle page_;  // until it is served first
  WebConfig web_;
  std::unique_ptr<web::WebFront> web_front_;
  std::unique_ptr<Listener> page_listener_;  // while it is served
};

}  // namespace ringlet::native
