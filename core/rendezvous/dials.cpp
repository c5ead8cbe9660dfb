// The part of a meeting that dials the others.
#include <algorithm>
#include <utility>

#include "core/base/rank_text.hpp"
#include "core/rendezvous/meeting.hpp"
#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

constexpr Duration kMaxDialPause = Duration::seconds(1);
constexpr int kMaxDialRefusals = 3;

}  // namespace

void Meeting::begin_dialling() {
  if (coordinates()) {
    if (rank() == 0) return;
    add_dial(0, *options_.coordinator);
  } else {
    for (int peer = 0; peer < rank(); ++peer) {
      wire::Member member;
      for (const Address& address : options_.roster[static_cast<std::size_t>(peer)])
        member.endpoints.push_back({address.host, address.port});
      add_link(peer, targets_of(member));
    }
  }
  for (std::size_t i = 0; i < dials_.size(); ++i) dial(i);
}

void Meeting::add_dial(int peer, Address address, bool relayed) {
  Dial attempt;
  attempt.rank = peer;
  attempt.relayed = relayed;
  attempt.address = std::move(address);
  dials_.push_back(std::move(attempt));
}

/// A link to a native whose address is known: where it has one alone, there is nothing to choose.
void Meeting::add_link(int peer, std::vector<wire::Endpoint> targets) {
  if (targets.size() == 1) return add_dial(peer, {targets.front().host, static_cast<std::uint16_t>(targets.front().port)});
  LinkRaceOptions options;
  options.request.from = static_cast<std::uint32_t>(rank());
  options.request.to = static_cast<std::uint32_t>(peer);
  options.proposal = {settings(), options_.world_id, static_cast<std::uint32_t>(peer)};
  options.targets = std::move(targets);
  options.interfaces = options_.interfaces;
  options.only_these_interfaces = options_.only_these_interfaces;
  options.session = world_.options().session;
  const auto on_end = [this, alive = alive_, peer](Result<LinkRace::Winner> outcome) {
    if (*alive && on_met_) on_link_won(peer, std::move(outcome));
  };
  races_.push_back({peer, std::make_unique<LinkRace>(loop_, dialler_, std::move(options), on_end)});
}

/// Rank 0 must hear of the new link first: to it, the end of the old one would be that of this rank.
void Meeting::put_aside(std::unique_ptr<Session> session) {
  session->set_owner(*this);
  session->discard_received();
  joined_by_ = std::move(session);
}

void Meeting::on_link_won(int peer, Result<LinkRace::Winner> outcome) {
  if (!outcome.ok())
    return world_.fail(
        {outcome.status().code(), rank_text(static_cast<std::uint64_t>(rank())) + " cannot join: " + outcome.status().text(), peer});
  LinkRace::Winner winner = std::move(outcome).value();
  if (world_.has_session(peer))
    put_aside(world_.replace(std::move(winner.session), peer));
  else
    world_.adopt(std::move(winner.session), peer);
  world_.set_path(peer, winner.path, true);
  linked_[static_cast<std::size_t>(peer)] = true;
  open_if_linked();
}

void Meeting::dial(std::size_t index) {
  Dial& attempt = dials_[index];
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
  dialler_.dial(attempt.address, times, request, [this, alive = alive_, index](Result<std::unique_ptr<Link>> link) {
    if (*alive && on_met_) on_dialled(index, std::move(link));
  });
}

void Meeting::on_dial_failed(std::size_t index, const Status& status) {
  Dial& attempt = dials_[index];
  attempt.last_error = status.text();
  attempt.refusals = status.code() == Errc::mismatch ? attempt.refusals + 1 : 0;
  // Once may be a rank that went away at that moment; what speaks no Ringlet, or another version, will not change its mind.
  if (attempt.refusals >= kMaxDialRefusals || status.code() == Errc::protocol_error)
    return world_.fail({status.code(), rank_text(static_cast<std::uint64_t>(rank())) + " cannot join: " + status.text(), attempt.rank});
  const Duration pause = attempt.pause;
  attempt.pause = std::min(attempt.pause * 2, kMaxDialPause);
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
  else if (roster_known_)
    world_.send_control(attempt.rank, wire::Connect{settings(), options_.world_id, options_.name});
  else
    world_.send_control(attempt.rank, make_join());
}

wire::RankSettings Meeting::settings() const {
  const WorldOptions& own = world_.options();
  wire::RankSettings settings{static_cast<std::uint32_t>(own.rank), static_cast<std::uint32_t>(own.size),
                              static_cast<std::uint32_t>(own.guests)};
  if (!is_guest()) settings.policy = static_cast<std::uint32_t>(own.placement.policy);
  return settings;
}

wire::Join Meeting::make_join() const {
  wire::Join join{settings(), "", listeners_.front()->address().port, own_endpoints()};
  if (options_.only_endpoints && !join.endpoints.empty()) {
    join.host = join.endpoints.front().host;
    join.port = join.endpoints.front().port;
  }
  return join;
}

}  // namespace ringlet
