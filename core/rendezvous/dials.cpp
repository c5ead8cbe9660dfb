// The part of a meeting that dials the others.
#include <algorithm>
#include <utility>

#include "core/rendezvous/meeting.hpp"

namespace ringlet {

namespace {

constexpr Duration kMaxPause = Duration::seconds(1);
constexpr int kMostRefusals = 3;

std::string rank_text(std::uint64_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

void Meeting::begin_dialling() {
  if (coordinates()) {
    if (rank() == 0) return;
    add_dial(0, {*options_.coordinator});
  } else {
    for (int peer = 0; peer < rank(); ++peer) add_dial(peer, options_.roster[static_cast<std::size_t>(peer)]);
  }
  for (std::size_t i = 0; i < dials_.size(); ++i) dial(i);
}

void Meeting::add_dial(int peer, std::vector<Address> addresses, bool relayed) {
  Dial attempt;
  attempt.rank = peer;
  attempt.relayed = relayed;
  attempt.addresses = std::move(addresses);
  dials_.push_back(std::move(attempt));
}

void Meeting::dial(std::size_t index) {
  Dial& attempt = dials_[index];
  const Address address = attempt.addresses[attempt.next++ % attempt.addresses.size()];
  LinkRequest request;
  request.from = static_cast<std::uint32_t>(rank());
  request.to = static_cast<std::uint32_t>(attempt.rank);
  DialTimes times;
  if (attempt.relayed) {
    request.kind = LinkRequest::Kind::relay;
    request.world_id = options_.world_id;
    // The relay answers when the other guest has dialled it, too.
    times.handshake = options_.timeout;
  }
  dialler_.dial(address, times, request, [this, alive = alive_, index](Result<std::unique_ptr<Link>> link) {
    if (*alive && on_met_) on_dialled(index, std::move(link));
  });
}

void Meeting::on_dial_failed(std::size_t index, const Status& status) {
  Dial& attempt = dials_[index];
  attempt.last_error = status.text();
  attempt.refusals = status.code() == Errc::mismatch ? attempt.refusals + 1 : 0;
  // Once may be a rank that went away at that moment; what speaks no Ringlet, or another version, will not change its mind.
  if (attempt.refusals >= kMostRefusals || status.code() == Errc::protocol_error)
    return world_.fail({status.code(), rank_text(static_cast<std::uint64_t>(rank())) + " cannot join: " + status.text(), attempt.rank});
  const Duration pause = attempt.pause;
  attempt.pause = std::min(attempt.pause * 2, kMaxPause);
  loop_.after(pause, [this, alive = alive_, index] {
    if (*alive && on_met_) dial(index);
  });
}

void Meeting::on_dialled(std::size_t index, Result<std::unique_ptr<Link>> link) {
  if (!link.ok()) return on_dial_failed(index, link.status());
  const Dial& attempt = dials_[index];
  world_.adopt(std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), world_.options().session),
               attempt.rank);
  if (attempt.relayed)
    world_.send_control(attempt.rank, wire::Welcome{static_cast<std::uint32_t>(rank())});
  else
    world_.send_control(attempt.rank, make_hello());
}

wire::Hello Meeting::make_hello() const {
  wire::Hello hello;
  hello.rank = static_cast<std::uint32_t>(rank());
  hello.world_size = static_cast<std::uint32_t>(size());
  hello.guests = static_cast<std::uint32_t>(world_.options().guests);
  hello.name = options_.name;
  if (!is_guest()) hello.policy = static_cast<std::uint32_t>(world_.options().placement.policy);
  if (roster_known_) {
    hello.purpose = wire::Hello::Purpose::link;
    hello.world_id = options_.world_id;
  } else {
    hello.port = listeners_.front()->address().port;
    hello.offers = own_offers();
    if (options_.only_offers && !hello.offers.empty()) {
      hello.host = hello.offers.front().host;
      hello.port = hello.offers.front().port;
    }
  }
  return hello;
}

}  // namespace ringlet
