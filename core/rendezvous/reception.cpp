#include "core/rendezvous/reception.hpp"

#include <algorithm>
#include <utility>

#include "core/base/address.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

namespace {

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
  void receive_ended() override { reception_.drop(id_); }
  void link_failed(const Status&) override { reception_.drop(id_); }

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
  if (relays_timer_ != 0) loop_.cancel(relays_timer_);
}

Acceptor Reception::acceptor() {
  return [this, alive = alive_](std::unique_ptr<Link> link) {
    if (*alive) receive(std::move(link));
  };
}

void Reception::admit(std::unique_ptr<Link> link, bool upgraded) {
  const std::string name = link->peer_name();
  const std::string host = host_of(name);
  if (pending() >= options_.max_pending) return;
  std::size_t& from_host = per_host_[host];
  if (from_host >= options_.max_pending_per_host) return;
  ++from_host;
  const Id id = ++last_id_;
  Newcomer& newcomer = newcomers_[id];
  newcomer.name = name;
  newcomer.host = host;
  newcomer.upgraded = upgraded;
  newcomer.timer = loop_.after(options_.handshake_timeout, [this, id] { drop(id); });
  newcomer.opening = std::make_unique<Opening>(*this, id, std::move(link));
}

Reception::Newcomer Reception::take(Id id) {
  auto taken = newcomers_.extract(id);
  Newcomer newcomer = std::move(taken.mapped());
  loop_.cancel(newcomer.timer);
  stop_counting(newcomer);
  if (newcomer.waits) waiting_.erase(*newcomer.waits);
  return newcomer;
}

void Reception::drop(Id id) {
  const Newcomer newcomer = take(id);
  if (const auto relay = relays_.find(newcomer.relay); relay != relays_.end()) relay->second->give_up(newcomer.side);
}

void Reception::stop_counting(Newcomer& newcomer) {
  const auto from_host = per_host_.find(newcomer.host);
  if (from_host == per_host_.end()) return;
  if (--from_host->second == 0) per_host_.erase(from_host);
  newcomer.host.clear();
}

void Reception::on_opened(Id id, std::unique_ptr<Link> link, const FirstBytes& first) {
  Newcomer& newcomer = newcomers_.at(id);
  if (first != kPrefaceMagic) {
    const Newcomer gone = take(id);
    if (on_other_protocol_ && !gone.upgraded) on_other_protocol_(std::move(link), first);
    return;
  }
  const std::unique_ptr<Opening> opened = std::move(newcomer.opening);
  newcomer.handshake = std::make_unique<AcceptHandshake>(
      loop_, std::move(link), first, authenticator_, [this, id](const LinkRequest& request) { on_request(id, request); },
      [this, id](Result<std::unique_ptr<Link>> outcome) { on_authenticated(id, std::move(outcome)); });
}

void Reception::on_request(Id id, const LinkRequest& request) {
  if (request.kind == LinkRequest::Kind::relay) return on_relay_request(id, request);
  if (request.kind != expected_) return drop(id);
  Newcomer& newcomer = newcomers_.at(id);
  if (request.shortcut && (shortcut_ == nullptr || newcomer.upgraded)) return drop(id);
  newcomer.shortcut = request.shortcut;
  newcomer.handshake->accept();
}

// --- relays ---

void Reception::relay_for(const WorldOptions& world) {
  rank_ = world.rank;
  natives_ = world.natives();
  size_ = world.size;
}

void Reception::on_relay_request(Id id, const LinkRequest& request) {
  const auto is_guest = [this](std::uint32_t rank) {
    return rank >= static_cast<std::uint32_t>(natives_) && rank < static_cast<std::uint32_t>(size_);
  };
  if (!is_guest(request.from) || !is_guest(request.to) || request.from == request.to ||
      (request.from + request.to) % static_cast<std::uint32_t>(natives_) != static_cast<std::uint32_t>(rank_))
    return drop(id);
  const RelayKey own{request.world_id, request.from, request.to};
  // Who dials again has given its first attempt up.
  if (const auto before = waiting_.find(own); before != waiting_.end()) drop(before->second);
  const auto counterpart = waiting_.find({request.world_id, request.to, request.from});
  if (counterpart == waiting_.end()) {
    if (waiting_.size() >= static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_)) return drop(id);
    Newcomer& newcomer = newcomers_.at(id);
    stop_counting(newcomer);
    loop_.cancel(newcomer.timer);
    newcomer.timer = loop_.after(options_.relay_timeout, [this, id] { drop(id); });
    newcomer.waits = own;
    waiting_[own] = id;
    return;
  }
  const Id other = counterpart->second;
  const Id relay = ++last_id_;
  relays_[relay] = std::make_unique<Relay>(loop_, [this, relay] { on_relay_over(relay); });
  join_relay(other, relay, 0);
  join_relay(id, relay, 1);
}

void Reception::join_relay(Id id, Id relay, std::size_t side) {
  Newcomer& newcomer = newcomers_.at(id);
  if (newcomer.waits) waiting_.erase(*std::exchange(newcomer.waits, std::nullopt));
  newcomer.relay = relay;
  newcomer.side = side;
  newcomer.handshake->accept();
}

void Reception::on_relay_over(Id relay) {
  relays_.erase(relay);
  if (!relays_.empty() || !on_relays_ended_) return;
  loop_.cancel(std::exchange(relays_timer_, 0));
  const auto on_ended = std::exchange(on_relays_ended_, nullptr);
  on_ended();
}

void Reception::when_relays_end(Duration timeout, std::function<void()> on_ended) {
  on_relays_ended_ = std::move(on_ended);
  relays_timer_ = loop_.after(relays_.empty() ? Duration{} : timeout, [this] {
    relays_timer_ = 0;
    const auto ended = std::exchange(on_relays_ended_, nullptr);
    ended();
  });
}

void Reception::on_authenticated(Id id, Result<std::unique_ptr<Link>> link) {
  const Newcomer newcomer = take(id);
  if (newcomer.relay != 0) {
    const auto relay = relays_.find(newcomer.relay);
    if (relay == relays_.end()) return;
    if (link.ok())
      relay->second->attach(newcomer.side, std::move(link).value());
    else
      relay->second->give_up(newcomer.side);
  } else if (link.ok() && newcomer.shortcut) {
    shortcut_->take(std::move(link).value(), LinkSide::acceptor, [this, alive = alive_](Result<std::unique_ptr<Link>> taken) {
      if (*alive && taken.ok() && on_link_) on_link_(std::move(taken).value());
    });
  } else if (link.ok()) {
    if (on_link_) on_link_(std::move(link).value());
  } else if (link.status().code() == Errc::mismatch) {
    ++refusals_.count;
    refusals_.last = newcomer.name;
  }
}

}  // namespace ringlet
