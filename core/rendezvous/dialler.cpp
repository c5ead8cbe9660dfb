#include "core/rendezvous/dialler.hpp"

#include <string>
#include <utility>

namespace ringlet {

Dialler::Dialler(EventLoop& loop, Network& network, Authenticator& authenticator, Shortcut* shortcut)
    : loop_(loop), network_(network), authenticator_(authenticator), shortcut_(shortcut) {}

Dialler::~Dialler() {
  for (const auto& [id, attempt] : attempts_) loop_.cancel(attempt.timer);
}

void Dialler::dial(const Address& address, const DialTimes& times, const LinkRequest& request, Dialled on_dialled) {
  auto connected =
      guard_.wrap([this, timeout = times.handshake, request, on_dialled = std::move(on_dialled)](Result<std::unique_ptr<Link>> link) {
        if (!link.ok()) return on_dialled(std::move(link));
        open(std::move(link).value(), timeout, request, on_dialled);
      });
  network_.dial(address, times.connect, std::move(connected));
}

void Dialler::open(std::unique_ptr<Link> link, Duration timeout, LinkRequest request, Dialled on_dialled) {
  const std::uint64_t id = ++last_id_;
  const std::string who = link->peer_name();
  Attempt& attempt = attempts_[id];
  attempt.on_dialled = std::move(on_dialled);
  attempt.shortcut = request.shortcut = request.kind == LinkRequest::Kind::link && shortcut_ != nullptr && shortcut_->offers(*link);
  attempt.timer = loop_.after(timeout, [this, id, who, timeout] {
    end(id, Status(Errc::timed_out,
                   who + " has not authenticated the connection within " + std::to_string(timeout.whole_milliseconds()) + " ms"));
  });
  attempt.handshake = std::make_unique<DialHandshake>(loop_, std::move(link), authenticator_, request,
                                                      [this, id](Result<std::unique_ptr<Link>> outcome) { end(id, std::move(outcome)); });
}

void Dialler::end(std::uint64_t id, Result<std::unique_ptr<Link>> outcome) {
  const auto attempt = attempts_.extract(id);
  loop_.cancel(attempt.mapped().timer);
  const Dialled on_dialled = std::move(attempt.mapped().on_dialled);
  if (!outcome.ok() || !attempt.mapped().shortcut) return on_dialled(std::move(outcome));
  shortcut_->take(std::move(outcome).value(), LinkSide::dialler, guard_.wrap(on_dialled));
}

}  // namespace ringlet
