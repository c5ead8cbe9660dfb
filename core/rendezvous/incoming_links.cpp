#include "core/rendezvous/incoming_links.hpp"

#include <limits>
#include <utility>

#include "core/base/address.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

namespace {

// More than a world has ranks.
constexpr std::size_t kMaxProvedHosts = 4'096;

}  // namespace

/// Reads a link's first four bytes.
class IncomingLinks::FirstBytesReader final : private LinkUser {
 public:
  FirstBytesReader(IncomingLinks& incoming, Id id, std::unique_ptr<Link> link) : incoming_(incoming), id_(id), link_(std::move(link)) {
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
    if (received_ == first_.size()) incoming_.on_first_bytes(id_, std::move(link_), first_);
  }
  void receive_ended() override { incoming_.drop(id_); }
  void link_failed(const Status&) override { incoming_.drop(id_); }

  IncomingLinks& incoming_;
  const Id id_;
  std::unique_ptr<Link> link_;
  FirstBytes first_{};
  std::size_t received_ = 0;
  Bytes part_;
};

IncomingLinks::IncomingLinks(EventLoop& loop, Authenticator& authenticator, const IncomingLinksOptions& options)
    : loop_(loop), authenticator_(authenticator), options_(options) {}

IncomingLinks::~IncomingLinks() {
  for (const auto& [id, entry] : pending_links_) loop_.cancel(entry.timer);
  if (relays_timer_ != 0) loop_.cancel(relays_timer_);
}

Acceptor IncomingLinks::acceptor() {
  return guard_.wrap([this](std::unique_ptr<Link> link) { receive(std::move(link)); });
}

void IncomingLinks::admit(std::unique_ptr<Link> link, bool upgraded) {
  const std::string name = link->peer_name();
  const std::string host = host_of(name);
  if (!make_room(host)) return;
  ++per_host_[host];
  const Id id = ++last_id_;
  PendingLink& entry = pending_links_[id];
  entry.name = name;
  entry.host = host;
  entry.upgraded = upgraded;
  entry.timer = loop_.after(options_.handshake_timeout, [this, id] { drop(id); });
  entry.first_bytes = std::make_unique<FirstBytesReader>(*this, id, std::move(link));
}

/// Drops a link where there are too many for another one from this host; false where it is the other one that has to go.
bool IncomingLinks::make_room(const std::string& host) {
  const auto own = per_host_.find(host);
  const bool host_is_full = own != per_host_.end() && own->second >= options_.max_pending_per_host;
  if (!host_is_full && pending() < options_.max_pending) return true;
  // The larger, the sooner it goes; ids grow with time.
  const auto expendability = [&](const auto& place) {
    const auto& [id, entry] = *place;
    return std::tuple(!proved_hosts_.contains(entry.host), per_host_.at(entry.host), std::numeric_limits<Id>::max() - id);
  };
  auto victim = pending_links_.end();
  for (auto place = pending_links_.begin(); place != pending_links_.end(); ++place) {
    const PendingLink& entry = place->second;
    const bool counts = !entry.host.empty() && entry.relay == 0 && (!host_is_full || entry.host == host);
    if (counts && (victim == pending_links_.end() || expendability(place) > expendability(victim))) victim = place;
  }
  if (victim == pending_links_.end()) return false;
  if (proved_hosts_.contains(victim->second.host) && !proved_hosts_.contains(host)) return false;
  drop(victim->first);
  return true;
}

IncomingLinks::PendingLink IncomingLinks::take(Id id) {
  auto taken = pending_links_.extract(id);
  PendingLink entry = std::move(taken.mapped());
  loop_.cancel(entry.timer);
  stop_counting(entry);
  if (entry.waits) waiting_.erase(*entry.waits);
  return entry;
}

void IncomingLinks::drop(Id id) {
  const PendingLink entry = take(id);
  if (const auto relay = relays_.find(entry.relay); relay != relays_.end()) relay->second->give_up(entry.side);
}

void IncomingLinks::stop_counting(PendingLink& entry) {
  const auto from_host = per_host_.find(entry.host);
  if (from_host == per_host_.end()) return;
  if (--from_host->second == 0) per_host_.erase(from_host);
  entry.host.clear();
}

void IncomingLinks::on_first_bytes(Id id, std::unique_ptr<Link> link, const FirstBytes& first) {
  PendingLink& entry = pending_links_.at(id);
  if (first != kPrefaceMagic) {
    const PendingLink gone = take(id);
    if (on_other_protocol_ && !gone.upgraded) on_other_protocol_(std::move(link), first);
    return;
  }
  const std::unique_ptr<FirstBytesReader> read = std::move(entry.first_bytes);
  entry.handshake = std::make_unique<AcceptHandshake>(
      loop_, std::move(link), first, authenticator_, [this, id](const LinkRequest& request) { on_request(id, request); },
      [this, id](Result<std::unique_ptr<Link>> outcome) { on_authenticated(id, std::move(outcome)); });
}

void IncomingLinks::on_request(Id id, const LinkRequest& request) {
  if (request.kind == LinkRequest::Kind::relay) return on_relay_request(id, request);
  if (request.kind != expected_) return drop(id);
  PendingLink& entry = pending_links_.at(id);
  if (request.shortcut && (shortcut_ == nullptr || entry.upgraded)) return drop(id);
  entry.shortcut = request.shortcut;
  entry.handshake->accept();
}

// --- relays ---

void IncomingLinks::relay_for(const WorldOptions& world) {
  rank_ = world.rank;
  natives_ = world.natives();
  size_ = world.size;
}

void IncomingLinks::on_relay_request(Id id, const LinkRequest& request) {
  const auto is_guest = [this](std::uint32_t rank) {
    return rank >= static_cast<std::uint32_t>(natives_) && rank < static_cast<std::uint32_t>(size_);
  };
  if (!is_guest(request.from) || !is_guest(request.to) || request.from == request.to ||
      (request.from + request.to) % static_cast<std::uint32_t>(natives_) != static_cast<std::uint32_t>(rank_))
    return drop(id);
  const RelayKey own{request.world_id, request.from, request.to};
  // A guest that dials again has given up its former attempt.
  if (const auto before = waiting_.find(own); before != waiting_.end()) drop(before->second);
  const auto counterpart = waiting_.find({request.world_id, request.to, request.from});
  if (counterpart == waiting_.end()) {
    if (waiting_.size() >= static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_)) return drop(id);
    PendingLink& entry = pending_links_.at(id);
    stop_counting(entry);
    loop_.cancel(entry.timer);
    entry.timer = loop_.after(options_.relay_timeout, [this, id] { drop(id); });
    entry.waits = own;
    waiting_[own] = id;
    return;
  }
  const Id other = counterpart->second;
  const Id relay = ++last_id_;
  relays_[relay] = std::make_unique<Relay>(loop_, [this, relay] { on_relay_over(relay); });
  join_relay(other, relay, 0);
  join_relay(id, relay, 1);
}

void IncomingLinks::join_relay(Id id, Id relay, std::size_t side) {
  PendingLink& entry = pending_links_.at(id);
  if (entry.waits) waiting_.erase(*std::exchange(entry.waits, std::nullopt));
  entry.relay = relay;
  entry.side = side;
  entry.handshake->accept();
}

void IncomingLinks::on_relay_over(Id relay) {
  relays_.erase(relay);
  if (!relays_.empty() || !on_relays_ended_) return;
  loop_.cancel(std::exchange(relays_timer_, 0));
  const auto on_ended = std::exchange(on_relays_ended_, nullptr);
  on_ended();
}

void IncomingLinks::when_relays_end(Duration timeout, std::function<void()> on_ended) {
  on_relays_ended_ = std::move(on_ended);
  relays_timer_ = loop_.after(relays_.empty() ? Duration{} : timeout, [this] {
    relays_timer_ = 0;
    const auto ended = std::exchange(on_relays_ended_, nullptr);
    ended();
  });
}

void IncomingLinks::on_authenticated(Id id, Result<std::unique_ptr<Link>> link) {
  if (const std::string& host = pending_links_.at(id).host; link.ok() && !host.empty() && proved_hosts_.size() < kMaxProvedHosts)
    proved_hosts_.insert(host);
  const PendingLink entry = take(id);
  if (entry.relay != 0) {
    const auto relay = relays_.find(entry.relay);
    if (relay == relays_.end()) return;
    if (link.ok())
      relay->second->attach(entry.side, std::move(link).value());
    else
      relay->second->give_up(entry.side);
  } else if (link.ok() && entry.shortcut) {
    shortcut_->take(std::move(link).value(), LinkSide::acceptor, guard_.wrap([this](Result<std::unique_ptr<Link>> taken) {
      if (taken.ok() && on_link_) on_link_(std::move(taken).value());
    }));
  } else if (link.ok()) {
    if (on_link_) on_link_(std::move(link).value());
  } else if (link.status().code() == Errc::mismatch) {
    ++refusals_.count;
    refusals_.last = entry.name;
  }
}

}  // namespace ringlet
