#include "core/rendezvous/rank_dials.hpp"

#include <utility>

#include "core/base/rank_text.hpp"
#include "core/ports/release_later.hpp"
#include "core/rendezvous/rank_settings.hpp"

namespace ringlet {

RankDials::RankDials(EventLoop& loop, Dialler& dialler, World& world, LinkTable& links, ClosingSessions& closing, RankDialOptions options,
                     std::function<void()> on_linked)
    : loop_(loop),
      dialler_(dialler),
      world_(world),
      links_(links),
      closing_(closing),
      options_(std::move(options)),
      on_linked_(std::move(on_linked)) {}

void RankDials::join(const Address& coordinator, wire::Join join) {
  Attempt attempt;
  attempt.address = coordinator;
  attempt.first_message = std::move(join);
  start(0, std::move(attempt));
}

void RankDials::connect(PlannedLink link, std::uint64_t world_id, const std::string& name) {
  if (link.targets.size() > 1) return race(link.peer, std::move(link.targets), world_id);
  const wire::Endpoint& target = link.targets.front();
  const WorldOptions& own = world_.options();
  Attempt attempt;
  attempt.address = {target.host, static_cast<std::uint16_t>(target.port)};
  if (link.relayed) {
    attempt.request.kind = LinkRequest::Kind::relay;
    attempt.request.world_id = world_id;
    attempt.first_message = wire::Welcome{static_cast<std::uint32_t>(own.rank)};
  } else {
    attempt.first_message = wire::Connect{settings_of(own), world_id, name};
  }
  start(link.peer, std::move(attempt));
}

void RankDials::stop() {
  guard_.end();
  attempts_.clear();
  for (auto& [peer, race] : races_) release_later(loop_, std::move(race));
  races_.clear();
}

std::string RankDials::complaints() const {
  std::string text;
  bool unanswered = false;
  const auto add = [&](const Status& failure) {
    if (failure.ok()) return;
    text += "; " + failure.text();
    unanswered |= failure.code() == Errc::timed_out;
  };
  for (const auto& [peer, race] : races_)
    if (!links_.has(peer)) add(race->last_failure());
  for (const auto& [peer, attempt] : attempts_) add(attempt.last_failure);
  return unanswered ? text + "; a firewall there may hold TCP back (`ringlet doctor` tells what to type)" : text;
}

// --- ranks with one address ---

void RankDials::start(int peer, Attempt attempt) {
  attempt.request.from = static_cast<std::uint32_t>(world_.options().rank);
  attempt.request.to = static_cast<std::uint32_t>(peer);
  attempts_.insert_or_assign(peer, std::move(attempt));
  dial(peer);
}

void RankDials::dial(int peer) {
  const Attempt& attempt = attempts_.at(peer);
  DialTimes times;
  if (attempt.request.kind == LinkRequest::Kind::relay) times.handshake = options_.relay_timeout;
  dialler_.dial(attempt.address, times, attempt.request,
                guard_.wrap([this, peer](Result<std::unique_ptr<Link>> link) { on_dialled(peer, std::move(link)); }));
}

void RankDials::on_dialled(int peer, Result<std::unique_ptr<Link>> link) {
  if (!link.ok()) return on_dial_failed(peer, link.status());
  const auto reached = attempts_.extract(peer);
  world_.adopt(std::move(link).value(), peer);
  world_.send_control(peer, reached.mapped().first_message);
}

void RankDials::on_dial_failed(int peer, const Status& status) {
  Attempt& attempt = attempts_.at(peer);
  attempt.last_failure = status;
  const bool has_gone = peer == 0 && options_.coordinator_listens && status.code() == Errc::peer_lost;
  if (attempt.refusals.add(status) || has_gone) return fail(peer, status);
  loop_.after(attempt.pause.next(), guard_.wrap([this, peer] { dial(peer); }));
}

// --- ranks with several addresses ---

void RankDials::race(int peer, std::vector<wire::Endpoint> targets, std::uint64_t world_id) {
  const WorldOptions& own = world_.options();
  LinkRaceOptions options;
  options.targets = std::move(targets);
  options.candidate.request.from = static_cast<std::uint32_t>(own.rank);
  options.candidate.request.to = static_cast<std::uint32_t>(peer);
  options.candidate.proposal = {settings_of(own), world_id, static_cast<std::uint32_t>(peer)};
  options.candidate.interfaces = options_.interfaces;
  options.candidate.only_these_interfaces = options_.only_these_interfaces;
  options.candidate.session = own.session;
  races_[peer] =
      std::make_unique<LinkRace>(loop_, dialler_, std::move(options),
                                 guard_.wrap([this, peer](Result<LinkRace::Winner> outcome) { on_race_ended(peer, std::move(outcome)); }));
}

void RankDials::on_race_ended(int peer, Result<LinkRace::Winner> outcome) {
  if (!outcome.ok()) return fail(peer, outcome.status());
  LinkRace::Winner winner = std::move(outcome).value();
  if (world_.has_session(peer))
    closing_.close_after_peer(world_.replace(std::move(winner.session), peer));
  else
    world_.adopt(std::move(winner.session), peer);
  world_.set_path(peer, winner.path, true);
  links_.confirm(peer);
  on_linked_();
}

void RankDials::fail(int peer, const Status& status) {
  world_.fail({status.code(), rank_text(world_.options().rank) + " cannot join: " + status.text(), peer});
}

}  // namespace ringlet
