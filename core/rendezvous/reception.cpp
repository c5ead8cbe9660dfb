#include "core/rendezvous/reception.hpp"

#include <algorithm>
#include <utility>

#include "core/base/address.hpp"

namespace ringlet {

namespace {

constexpr Reception::FirstBytes kMagic{std::byte{'R'}, std::byte{'N'}, std::byte{'G'}, std::byte{'L'}};

std::string host_of(const std::string& peer_name) {
  const auto address = parse_address(peer_name);
  return address.ok() ? address.value().host : peer_name;
}

}  // namespace

/// Reads a link's first four bytes.
class Reception::Opening final : private LinkUser {
 public:
  Opening(Reception& reception, Id id, std::unique_ptr<Link> link) : reception_(reception), id_(id), link_(std::move(link)) {
    link_->start(*this);
  }

 private:
  std::span<const ConstBytes> to_send() override { return {}; }
  void sent(std::size_t) override {}
  std::span<const Bytes> to_receive() override {
    part_ = Bytes(first_).subspan(received_);
    return {&part_, 1};
  }
  void received(std::size_t bytes) override {
    received_ += bytes;
    if (received_ == first_.size()) reception_.on_opened(id_, std::move(link_), first_);
  }
  void receive_ended() override { reception_.take(id_); }
  void link_failed(const Status&) override { reception_.take(id_); }

  Reception& reception_;
  const Id id_;
  std::unique_ptr<Link> link_;
  FirstBytes first_{};
  std::size_t received_ = 0;
  Bytes part_;
};

Reception::Reception(EventLoop& loop, Authenticator& authenticator, const ReceptionOptions& options)
    : loop_(loop), authenticator_(authenticator), options_(options), alive_(std::make_shared<bool>(true)) {}

Reception::~Reception() {
  *alive_ = false;
  for (const auto& [id, newcomer] : newcomers_) loop_.cancel(newcomer.timer);
}

Acceptor Reception::acceptor() {
  return [this, alive = alive_](std::unique_ptr<Link> link) {
    if (*alive) receive(std::move(link));
  };
}

void Reception::admit(std::unique_ptr<Link> link, bool upgraded) {
  const std::string name = link->peer_name();
  const std::string host = host_of(name);
  if (newcomers_.size() >= options_.max_pending) return;
  std::size_t& from_host = per_host_[host];
  if (from_host >= options_.max_pending_per_host) return;
  ++from_host;
  const Id id = ++last_id_;
  Newcomer& newcomer = newcomers_[id];
  newcomer.name = name;
  newcomer.host = host;
  newcomer.upgraded = upgraded;
  newcomer.timer = loop_.after(options_.handshake_timeout, [this, id] { take(id); });
  newcomer.opening = std::make_unique<Opening>(*this, id, std::move(link));
}

Reception::Newcomer Reception::take(Id id) {
  auto taken = newcomers_.extract(id);
  Newcomer newcomer = std::move(taken.mapped());
  loop_.cancel(newcomer.timer);
  const auto from_host = per_host_.find(newcomer.host);
  if (--from_host->second == 0) per_host_.erase(from_host);
  return newcomer;
}

void Reception::on_opened(Id id, std::unique_ptr<Link> link, const FirstBytes& first) {
  Newcomer& newcomer = newcomers_.at(id);
  if (first != kMagic) {
    const Newcomer gone = take(id);
    if (on_other_protocol_ && !gone.upgraded) on_other_protocol_(std::move(link), first);
    return;
  }
  const std::unique_ptr<Opening> opened = std::move(newcomer.opening);
  newcomer.handshake = std::make_unique<AcceptHandshake>(
      std::move(link), first, authenticator_, [this, id](const LinkRequest& request) { on_request(id, request); },
      [this, id](Result<std::unique_ptr<Link>> outcome) { on_authenticated(id, std::move(outcome)); });
}

void Reception::on_request(Id id, const LinkRequest& request) {
  if (request.kind == LinkRequest::Kind::link)
    newcomers_.at(id).handshake->accept();
  else
    take(id);
}

void Reception::on_authenticated(Id id, Result<std::unique_ptr<Link>> link) {
  const Newcomer newcomer = take(id);
  if (link.ok()) {
    if (on_link_) on_link_(std::move(link).value());
  } else if (link.status().code() == Errc::mismatch) {
    ++refusals_.count;
    refusals_.last = newcomer.name;
  }
}

}  // namespace ringlet
