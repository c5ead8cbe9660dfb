#include "core/rendezvous/admission.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/rank_text.hpp"
#include "core/ports/release_later.hpp"
#include "core/rendezvous/endpoints.hpp"
#include "core/rendezvous/link_measurement.hpp"
#include "core/rendezvous/rank_settings.hpp"

namespace ringlet {

namespace {

/// Candidates for links, of which each rank may have one per endpoint, may come on top of these.
constexpr std::size_t kMaxUnidentifiedPeers = 256;

Status already_there(std::uint32_t rank) {
  return {Errc::invalid_argument, rank_text(rank) + " is already there; each process needs a rank of its own"};
}

}  // namespace

Admission::Admission(EventLoop& loop, World& world, LinkTable& links, ClosingSessions& closing, Coordinator* coordinator,
                     const AdmissionOptions& options, std::function<void()> on_admitted)
    : loop_(loop),
      world_(world),
      own_(world.options()),
      links_(links),
      closing_(closing),
      coordinator_(coordinator),
      options_(options),
      on_admitted_(std::move(on_admitted)) {}

void Admission::receive(std::unique_ptr<Link> link) {
  const std::size_t most = kMaxUnidentifiedPeers + wire::kMaxEndpoints * static_cast<std::size_t>(own_.size);
  if (peers_.size() + closing_.size() >= most) return;
  // A rank whose link comes after the failure is told the reason, since it would otherwise blame this rank for closing the link.
  if (!world_.failure().ok()) return closing_.reject(std::move(link), world_.failure());
  if (refusal_) return closing_.reject(std::move(link), *refusal_);
  if (!open_) return;
  UnidentifiedPeer::Callbacks callbacks{
      [this](UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message) { on_message(connection, message); },
      [this](UnidentifiedPeer& connection) { drop(*find(connection)); }};
  peers_.push_back({std::make_unique<UnidentifiedPeer>(loop_, std::move(link), own_.session, std::move(callbacks))});
}

void Admission::set_world_id(std::uint64_t id) {
  options_.world_id = id;
  std::vector<Peer*> early;
  for (Peer& peer : peers_)
    if (peer.early) early.push_back(&peer);
  for (Peer* const peer : early) {
    if (!world_.failure().ok()) return;
    const auto message = *std::exchange(peer->early, std::nullopt);
    if (const auto* connect = std::get_if<wire::Connect>(&message)) on_connect(*peer, *connect);
    if (const auto* propose = std::get_if<wire::Propose>(&message)) on_propose(*peer, *propose);
  }
}

void Admission::refuse_all(const Status& reason) {
  refusal_ = reason;
  while (!peers_.empty()) reject(peers_.back(), reason);
}

void Admission::drop_all() {
  open_ = false;
  while (!peers_.empty()) drop(peers_.back());
}

// --- the first message ---

void Admission::on_message(UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message) {
  Peer& peer = *find(connection);
  if (!message || peer.early) return drop(peer);
  if (peer.candidate) return on_candidate_message(peer, *message);
  if (const auto* request = std::get_if<wire::SeatRequest>(&*message)) return on_seat_request(peer, *request);
  if (const auto* join = std::get_if<wire::Join>(&*message)) {
    if (passes(peer, join->settings)) on_join(peer, *join);
  } else if (const auto* propose = std::get_if<wire::Propose>(&*message)) {
    if (options_.world_id) return on_propose(peer, *propose);
    peer.early = *propose;
  } else if (const auto* connect = std::get_if<wire::Connect>(&*message)) {
    if (!passes(peer, connect->settings)) return;
    if (options_.world_id) return on_connect(peer, *connect);
    peer.early = *connect;
  } else {
    drop(peer);
  }
}

Status Admission::check(const wire::RankSettings& settings) const {
  if (Status status = check_settings(settings, own_); !status.ok()) return status;
  const int rank = static_cast<int>(settings.rank);
  return rank == own_.rank || world_.has_session(rank) ? already_there(settings.rank) : Status{};
}

/// Returns whether the peer may join. Otherwise the peer is rejected, and where it was started for another world, this world fails.
bool Admission::passes(Peer& peer, const wire::RankSettings& settings) {
  const Status status = check(settings);
  if (status.ok()) return true;
  reject(peer, status);
  if (status.code() == Errc::mismatch) world_.fail(status);
  return false;
}

void Admission::on_seat_request(Peer& peer, const wire::SeatRequest& request) {
  if (coordinator_ == nullptr)
    return reject(peer, {Errc::invalid_argument, "guests get their seat from rank 0; this is " + rank_text(own_.rank)});
  std::unique_ptr<Session> session = take(peer);
  if (Status status = coordinator_->seat(session, request.name); !status.ok()) return closing_.reject(std::move(session), status);
  on_admitted_();
}

void Admission::on_join(Peer& peer, const wire::Join& join) {
  const int rank = static_cast<int>(join.settings.rank);
  const bool expected = options_.has_coordinator && coordinator_ != nullptr && !own_.is_guest(rank) && join.port > 0 &&
                        join.port <= 65'535 && std::all_of(join.endpoints.begin(), join.endpoints.end(), is_dialable);
  if (!expected) return reject(peer, {Errc::invalid_argument, "this rank is not the coordinator of " + rank_text(rank)});
  wire::Member member{join.settings.rank, join.host, join.port, "", join.endpoints};
  if (member.host.empty()) {
    const auto seen = parse_address(peer.connection->name());
    if (!seen.ok())
      return reject(peer, {Errc::invalid_argument, "the coordinator cannot see the address of " + rank_text(rank) + "; give it one"});
    member.host = seen.value().host;
  }
  world_.adopt(take(peer), rank);
  links_.confirm(rank);
  coordinator_->add(std::move(member));
  on_admitted_();
}

void Admission::on_connect(Peer& peer, const wire::Connect& connect) {
  const std::string who = rank_text(connect.settings.rank), self = rank_text(own_.rank);
  const int rank = static_cast<int>(connect.settings.rank);
  // Another connection of the same rank may have been admitted while this one waited.
  if (Status status = check(connect.settings); !status.ok()) return reject(peer, status);
  if (connect.world_id != options_.world_id) {
    const Status status{Errc::mismatch,
                        options_.has_coordinator ? who + " belongs to another world"
                                                 : who + "'s hostfile differs from that of " + self + "; give all ranks the same",
                        rank};
    reject(peer, status);
    if (!options_.has_coordinator) world_.fail(status);
    return;
  }
  if (rank < own_.rank)
    return reject(peer, {Errc::protocol_error, "the higher rank dials, but " + who + " dialled " + std::to_string(own_.rank)});
  if (own_.is_guest(rank) && world_.rank_name(rank).empty())
    world_.set_rank_name(rank, name_for_people(connect.name, peer.connection->name()));
  world_.adopt(take(peer), rank);
  links_.confirm(rank);
  world_.send_control(rank, wire::Welcome{static_cast<std::uint32_t>(own_.rank)});
  on_admitted_();
}

// --- candidates for a link ---

void Admission::on_propose(Peer& peer, const wire::Propose& propose) {
  const wire::RankSettings& settings = propose.settings;
  const std::string who = rank_text(settings.rank);
  if (propose.world_id != options_.world_id || settings.world_size != static_cast<std::uint32_t>(own_.size))
    return reject(peer, {Errc::mismatch, who + " belongs to another world than the rank at this address"});
  if (propose.to != static_cast<std::uint32_t>(own_.rank))
    return reject(peer, {Errc::mismatch, who + " looks for " + rank_text(propose.to) + ", but at this address is " + rank_text(own_.rank)});
  const bool dials_here = settings.rank > propose.to && settings.rank < static_cast<std::uint32_t>(own_.natives());
  const int rank = dials_here ? static_cast<int>(settings.rank) : -1;
  if (!dials_here || links_.has(rank)) return reject(peer, already_there(settings.rank));
  if (!options_.has_coordinator && !passes(peer, settings)) return;
  peer.candidate.emplace(own_.rank, rank);
  peer.connection->set_max_message_bytes(LinkMeasurement::kMaxMessageBytes);
  peer.connection->send(wire::Welcome{static_cast<std::uint32_t>(own_.rank)});
}

void Admission::on_candidate_message(Peer& peer, const wire::ControlMessage& message) {
  using Kind = CandidateResponder::Reaction::Kind;
  const auto reaction = peer.candidate->on_message(message);
  switch (reaction.kind) {
    case Kind::answer:
      return peer.connection->send(reaction.answer);
    case Kind::confirmed:
      return on_candidate_confirmed(peer);
    case Kind::violation:
      return drop(peer);
  }
}

void Admission::on_candidate_confirmed(Peer& peer) {
  const int rank = peer.candidate->peer();
  if (links_.has(rank)) return reject(peer, already_there(static_cast<std::uint32_t>(rank)));
  const wire::Path path = peer.candidate->path();
  if (world_.has_session(rank))
    closing_.close(world_.replace(take(peer), rank));
  else
    world_.adopt(take(peer), rank);
  world_.set_path(rank, path, false);
  links_.confirm(rank);
  on_admitted_();
}

// --- the end of a peer here ---

Admission::Peers::iterator Admission::find(const UnidentifiedPeer& connection) {
  return std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.connection.get() == &connection; });
}

/// The connection may be inside a call of its own, so it is destroyed later.
std::unique_ptr<Session> Admission::take(const Peer& peer) {
  const auto found = find(*peer.connection);
  std::unique_ptr<Session> session = found->connection->release();
  release_later(loop_, std::move(found->connection));
  peers_.erase(found);
  return session;
}

void Admission::reject(const Peer& peer, const Status& reason) { closing_.reject(take(peer), reason); }

void Admission::drop(const Peer& peer) {
  std::unique_ptr<Session> session = take(peer);
  session->close();
  release_later(loop_, std::move(session));
}

}  // namespace ringlet
