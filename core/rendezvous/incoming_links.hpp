#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "core/base/alive_guard.hpp"
#include "core/engine/options.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"
#include "core/ports/shortcut.hpp"
#include "core/rendezvous/handshake.hpp"
#include "core/rendezvous/relay.hpp"

namespace ringlet {

struct IncomingLinksOptions {
  Duration handshake_timeout = Duration::seconds(10);
  std::size_t max_pending = 512;  // links that are not authenticated yet
  std::size_t max_pending_per_host = 128;
  Duration relay_timeout = Duration::seconds(600);  // how long a guest waits for the guest that it wants a link with
};

/// Takes every link that comes in, and passes it on once the peer's request is known. A peer that speaks Ringlet has to prove first that it
/// knows the token; a link with another protocol is passed on by its first bytes, if there is a user for it. Links that exceed a deadline
/// are dropped, and where there are too many, the oldest of the host that has the most, so that nobody can keep others out by connections
/// that prove nothing; hosts of which one has proved that it knows the token come last. Belongs to the loop's thread.
class IncomingLinks {
 public:
  /// Starts the link before it returns, or destroys it.
  using OnLink = std::function<void(std::unique_ptr<Link>)>;
  using FirstBytes = std::array<std::byte, 4>;
  using OnOtherProtocol = std::function<void(std::unique_ptr<Link>, const FirstBytes&)>;
  /// Counts links that were dialled with another token, or none.
  struct Refusals {
    std::size_t count = 0;
    std::string last;  // the peer's name
  };

  /// Both arguments outlive it.
  IncomingLinks(EventLoop& loop, Authenticator& authenticator, const IncomingLinksOptions& options = {});
  ~IncomingLinks();
  IncomingLinks(const IncomingLinks&) = delete;
  IncomingLinks& operator=(const IncomingLinks&) = delete;

  /// Takes over a link that was accepted.
  void receive(std::unique_ptr<Link> link) { admit(std::move(link), false); }
  /// Like receive(), for a link of another protocol that was upgraded (a WebSocket), over which the peer has to speak Ringlet.
  void receive_upgraded(std::unique_ptr<Link> link) { admit(std::move(link), true); }
  /// From now on links are relayed between those pairs of guests of this world that this rank is the relay of.
  void relay_for(const WorldOptions& world);
  /// Calls `on_ended` from the loop, once no link is relayed any more, or after `timeout`.
  void when_relays_end(Duration timeout, std::function<void()> on_ended);
  std::size_t relays() const { return relays_.size(); }
  /// A function that calls receive(), and does nothing once this object is gone.
  Acceptor acceptor();

  /// The function that is given each authenticated link, ready for a session. Where it is not set, these links are dropped.
  void set_on_link(OnLink on_link) { on_link_ = std::move(on_link); }
  /// The kind of link that peers may ask for beside relays; initially a link between ranks. A peer that asks for another kind is dropped.
  void set_expected(LinkRequest::Kind kind) { expected_ = kind; }
  /// The function that is given each link that does not begin with Ringlet's magic, with its first four bytes. Where it is not set, these
  /// links are dropped.
  void set_on_other_protocol(OnOtherProtocol on_other) { on_other_protocol_ = std::move(on_other); }

  /// The shortcut that diallers may ask for; it outlives this object. Where it is null, as initially, a link that asks for one is dropped.
  /// Upgraded links are dropped in any case.
  void set_shortcut(Shortcut* shortcut) { shortcut_ = shortcut; }

  /// The number of links that are not authenticated yet.
  std::size_t pending() const { return pending_links_.size() - waiting_.size(); }
  const Refusals& refusals() const { return refusals_; }

 private:
  class FirstBytesReader;
  using Id = std::uint64_t;
  using RelayKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // world, from, to
  struct PendingLink {
    std::unique_ptr<FirstBytesReader> first_bytes;  // until they are there
    std::unique_ptr<AcceptHandshake> handshake;     // after that
    std::string name, host;
    bool upgraded = false;
    bool shortcut = false;  // whether one was asked for
    TimerId timer = 0;
    std::optional<RelayKey> waits;  // set while an authenticated guest waits for the one it wants a link with
    Id relay = 0;                   // after that: the relay that it belongs to
    std::size_t side = 0;
  };
  void admit(std::unique_ptr<Link> link, bool upgraded);
  bool make_room(const std::string& host);
  void on_first_bytes(Id id, std::unique_ptr<Link> link, const FirstBytes& first);
  void on_request(Id id, const LinkRequest& request);
  void on_relay_request(Id id, const LinkRequest& request);
  void join_relay(Id id, Id relay, std::size_t side);
  void on_relay_over(Id relay);
  void stop_counting(PendingLink& entry);
  void on_authenticated(Id id, Result<std::unique_ptr<Link>> link);
  PendingLink take(Id id);
  void drop(Id id);

  EventLoop& loop_;
  Authenticator& authenticator_;
  const IncomingLinksOptions options_;
  Shortcut* shortcut_ = nullptr;
  LinkRequest::Kind expected_ = LinkRequest::Kind::link;
  OnLink on_link_;
  OnOtherProtocol on_other_protocol_;
  std::map<Id, PendingLink> pending_links_;
  std::map<std::string, std::size_t> per_host_;
  std::set<std::string> proved_hosts_;
  std::map<RelayKey, Id> waiting_;  // pending links
  std::map<Id, std::unique_ptr<Relay>> relays_;
  int rank_ = 0, natives_ = 1, size_ = 1;  // of the world whose guests it relays between
  std::function<void()> on_relays_ended_;
  TimerId relays_timer_ = 0;
  Id last_id_ = 0;
  Refusals refusals_;
  AliveGuard guard_;
};

}  // namespace ringlet
