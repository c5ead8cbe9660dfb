#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "core/engine/options.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"
#include "core/ports/shortcut.hpp"
#include "core/rendezvous/handshake.hpp"
#include "core/rendezvous/relay.hpp"

namespace ringlet {

struct ReceptionOptions {
  Duration handshake_timeout = Duration::seconds(10);
  std::size_t max_pending = 512;  // newcomers that have not authenticated themselves
  std::size_t max_pending_per_host = 128;
  Duration relay_timeout = Duration::seconds(600);  // how long a guest waits for the one that it wants a link with
};

/// Where every link that comes in waits until it is known who is there. Whoever speaks Ringlet has to prove that it knows the token before
/// anyone hears of it; whoever speaks something else is handed on, if anyone wants it. What exceeds a bound or a deadline is dropped.
/// Belongs to the loop's thread.
class Reception {
 public:
  /// Who gets a link starts it before it returns, or destroys it.
  using OnLink = std::function<void(std::unique_ptr<Link>)>;
  using FirstBytes = std::array<std::byte, 4>;
  using OnOtherProtocol = std::function<void(std::unique_ptr<Link>, const FirstBytes&)>;
  /// Dialled links that failed to authenticate themselves.
  struct Refusals {
    std::size_t count = 0;
    std::string last;  // the peer's name
  };

  /// Both outlive it.
  Reception(EventLoop& loop, Authenticator& authenticator, const ReceptionOptions& options = {});
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// Takes over a link that was accepted. It is dropped where too many wait already.
  void receive(std::unique_ptr<Link> link) { admit(std::move(link), false); }
  /// The same for a link that stands on one that was handed on (a WebSocket): it can only speak Ringlet.
  void receive_upgraded(std::unique_ptr<Link> link) { admit(std::move(link), true); }
  /// From now on it relays between guests of this world, for the pairs that are this rank's.
  void relay_for(const WorldOptions& world);
  /// Calls `on_ended` once no link is relayed any more, or after `timeout`; from the loop.
  void when_relays_end(Duration timeout, std::function<void()> on_ended);
  std::size_t relays() const { return relays_.size(); }
  /// Calls receive(); does nothing once the reception has gone.
  Acceptor acceptor();

  /// Gets each authenticated link, ready for a session. Unset: they are dropped.
  void set_on_link(OnLink on_link) { on_link_ = std::move(on_link); }
  /// What else than relays may be asked for; at first links between ranks. Who asks for another kind is dropped.
  void set_expected(LinkRequest::Kind kind) { expected_ = kind; }
  /// Gets each link that does not begin with Ringlet's magic, and its first four bytes. Unset: they are dropped.
  void set_on_other_protocol(OnOtherProtocol on_other) { on_other_protocol_ = std::move(on_other); }

  /// Who dials may ask for a shortcut; null, as at first: who asks for one is dropped, as are those of receive_upgraded(). It outlives
  /// this.
  void set_shortcut(Shortcut* shortcut) { shortcut_ = shortcut; }

  /// Newcomers that have not authenticated themselves.
  std::size_t pending() const { return newcomers_.size() - waiting_.size(); }
  const Refusals& refusals() const { return refusals_; }

 private:
  class Opening;
  using Id = std::uint64_t;
  using RelayKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // world, from, to
  struct Newcomer {
    std::unique_ptr<Opening> opening;  // then
    std::unique_ptr<AcceptHandshake> handshake;
    std::string name, host;
    bool upgraded = false;
    bool shortcut = false;  // asked for
    TimerId timer = 0;
    std::optional<RelayKey> waits;  // authenticated, for the one that it wants a link with
    Id relay = 0;                   // then the relay that its link belongs to
    std::size_t side = 0;
  };
  void admit(std::unique_ptr<Link> link, bool upgraded);
  void on_opened(Id id, std::unique_ptr<Link> link, const FirstBytes& first);
  void on_request(Id id, const LinkRequest& request);
  void on_relay_request(Id id, const LinkRequest& request);
  void join_relay(Id id, Id relay, std::size_t side);
  void on_relay_over(Id relay);
  void stop_counting(Newcomer& newcomer);
  void on_authenticated(Id id, Result<std::unique_ptr<Link>> link);
  Newcomer take(Id id);
  void drop(Id id);

  EventLoop& loop_;
  Authenticator& authenticator_;
  const ReceptionOptions options_;
  Shortcut* shortcut_ = nullptr;
  LinkRequest::Kind expected_ = LinkRequest::Kind::link;
  OnLink on_link_;
  OnOtherProtocol on_other_protocol_;
  std::map<Id, Newcomer> newcomers_;
  std::map<std::string, std::size_t> per_host_;
  std::map<RelayKey, Id> waiting_;  // newcomers
  std::map<Id, std::unique_ptr<Relay>> relays_;
  int rank_ = 0, natives_ = 1, size_ = 1;  // of the world that it relays for
  std::function<void()> on_relays_ended_;
  TimerId relays_timer_ = 0;
  Id last_id_ = 0;
  Refusals refusals_;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet
