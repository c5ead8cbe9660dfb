#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"
#include "core/rendezvous/handshake.hpp"

namespace ringlet {

struct ReceptionOptions {
  Duration handshake_timeout = Duration::seconds(10);
  std::size_t max_pending = 512;  // newcomers that have not authenticated themselves
  std::size_t max_pending_per_host = 128;
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
  /// Calls receive(); does nothing once the reception has gone.
  Acceptor acceptor();

  /// Gets each authenticated link, ready for a session. Unset: they are dropped.
  void set_on_link(OnLink on_link) { on_link_ = std::move(on_link); }
  /// Gets each link that does not begin with Ringlet's magic, and its first four bytes. Unset: they are dropped.
  void set_on_other_protocol(OnOtherProtocol on_other) { on_other_protocol_ = std::move(on_other); }

  std::size_t pending() const { return newcomers_.size(); }
  const Refusals& refusals() const { return refusals_; }

 private:
  class Opening;
  struct Newcomer {
    std::unique_ptr<Opening> opening;  // then
    std::unique_ptr<AcceptHandshake> handshake;
    std::string name, host;
    bool upgraded = false;
    TimerId timer = 0;
  };
  using Id = std::uint64_t;

  void admit(std::unique_ptr<Link> link, bool upgraded);
  void on_opened(Id id, std::unique_ptr<Link> link, const FirstBytes& first);
  void on_request(Id id, const LinkRequest& request);
  void on_authenticated(Id id, Result<std::unique_ptr<Link>> link);
  Newcomer take(Id id);

  EventLoop& loop_;
  Authenticator& authenticator_;
  const ReceptionOptions options_;
  OnLink on_link_;
  OnOtherProtocol on_other_protocol_;
  std::map<Id, Newcomer> newcomers_;
  std::map<std::string, std::size_t> per_host_;
  Id last_id_ = 0;
  Refusals refusals_;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet
