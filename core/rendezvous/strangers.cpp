// The part of a meeting that deals with those who have come in and not said yet who they are.
#include <algorithm>
#include <utility>

#include "core/base/rank_text.hpp"
#include "core/rendezvous/endpoints.hpp"
#include "core/rendezvous/meeting.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxStrangers = 256;
constexpr std::size_t kMaxHelloBytes = 4096;
constexpr std::size_t kMaxCandidateBytes = LinkRace::kPadding + 1024;
constexpr Duration kLeavingTime = Duration::seconds(1);

std::string policy_text(std::uint32_t policy) {
  if (policy >= kPlacementPolicyCount) return "number " + std::to_string(policy);
  return "'" + std::string(name_of(static_cast<PlacementPolicy>(policy))) + "'";
}

}  // namespace

void Meeting::on_stranger(std::unique_ptr<Link> link) {
  const Status& failure = world_.failure();
  if ((!on_met_ && !met_ && failure.ok()) ||
      strangers_.size() + leaving_.size() >= kMaxStrangers + wire::kMaxEndpoints * static_cast<std::size_t>(size()))
    return;
  auto session = std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), world_.options().session);
  auto sink = std::make_unique<StrangerSink>(*this, *session);
  Stranger stranger;
  stranger.session = std::move(session);
  stranger.sink = std::move(sink);
  strangers_.push_back(std::move(stranger));
  // A rank whose link comes after the failure would blame this one for closing it.
  if (!on_met_) reject(*strangers_.back().session, met_ ? group_is_complete() : failure);
}

Status Meeting::group_is_complete() const {
  return {Errc::invalid_argument, "the group is complete: all its " + std::to_string(size()) +
                                      " ranks have met; who comes later has to wait "
                                      "for the next one"};
}

Meeting::Stranger* Meeting::find_stranger(const Session& session) {
  const auto it = std::find_if(strangers_.begin(), strangers_.end(), [&](const Stranger& s) { return s.session.get() == &session; });
  return it == strangers_.end() ? nullptr : &*it;
}

PayloadSink* Meeting::on_frame(Session& session, const FrameHeader& header) {
  Stranger* stranger = find_stranger(session);
  if (stranger == nullptr) return nullptr;
  if (header.kind == FrameKind::control && header.payload_bytes <= (stranger->candidate_of < 0 ? kMaxHelloBytes : kMaxCandidateBytes)) {
    stranger->sink->begin();
    return stranger->sink.get();
  }
  drop_stranger(session);
  return nullptr;
}

void Meeting::on_session_failed(Session& session, const Status&) { on_session_over(session); }

void Meeting::on_session_ended(Session& session) { on_session_over(session); }

void Meeting::on_session_over(Session& session) {
  if (&session != joined_by_.get()) return drop_stranger(session);
  session.close();
  loop_.defer([gone = std::shared_ptr<Session>(std::move(joined_by_))] {});
}

/// A session may not go inside its own call: it is closed now and destroyed later.
std::unique_ptr<Session> Meeting::take_stranger(Session& session) {
  const auto it = std::find_if(strangers_.begin(), strangers_.end(), [&](const Stranger& s) { return s.session.get() == &session; });
  if (it == strangers_.end()) return nullptr;
  std::unique_ptr<Session> taken = std::move(it->session);
  std::shared_ptr<StrangerSink> sink = std::move(it->sink);
  strangers_.erase(it);
  loop_.defer([sink] {});
  return taken;
}

void Meeting::drop_stranger(Session& session) {
  std::shared_ptr<Session> taken = take_stranger(session);
  if (!taken) return;
  taken->close();
  std::erase_if(held_, [&](const auto& entry) { return entry.first == &session; });
  loop_.defer([taken] {});
}

void Meeting::reject(Session& session, const Status& status) {
  if (std::unique_ptr<Session> taken = take_stranger(session)) send_off(std::move(taken), status);
}

void Meeting::send_off(std::unique_ptr<Session> session, const Status& status) {
  say(*session, wire::to_abort(status));
  let_go(std::move(session));
}

void Meeting::let_go(std::unique_ptr<Session> session) {
  session->set_owner(*this);
  session->discard_received();
  session->finish_sending();
  leaving_.push_back(std::move(session));
  loop_.after(kLeavingTime, [this, alive = alive_] {
    if (*alive) leaving_.pop_front();
  });
}

void Meeting::say(Session& session, const wire::ControlMessage& message) {
  const std::string payload = wire::encode_control(message);
  FrameHeader header;
  header.kind = FrameKind::control;
  session.send_owned(header, std::as_bytes(std::span(payload)));
}

void Meeting::on_stranger_spoke(Session& session, ConstBytes payload) {
  const auto message = wire::decode_control(payload);
  Stranger* const stranger = find_stranger(session);
  if (stranger != nullptr && stranger->candidate_of >= 0) return on_candidate_spoke(*stranger, message);
  const bool spoke_before = std::any_of(held_.begin(), held_.end(), [&](const auto& entry) { return entry.first == &session; });
  if (!message || spoke_before) return drop_stranger(session);
  if (const auto* request = std::get_if<wire::SeatRequest>(&*message)) return on_seat_request(session, *request);
  if (const auto* join = std::get_if<wire::Join>(&*message)) {
    if (is_admissible(session, join->settings)) on_join(session, *join);
  } else if (const auto* propose = std::get_if<wire::Propose>(&*message)) {
    roster_known_ ? on_propose(session, *propose) : held_.push_back({&session, *propose});
  } else if (const auto* connect = std::get_if<wire::Connect>(&*message)) {
    if (!is_admissible(session, connect->settings)) return;
    roster_known_ ? on_connect(session, *connect) : held_.push_back({&session, *connect});
  } else {
    drop_stranger(session);
  }
}

bool Meeting::is_admissible(Session& session, const wire::RankSettings& settings) {
  const Status status = check_settings(settings);
  if (status.ok()) return true;
  reject(session, status);
  if (status.code() == Errc::mismatch) world_.fail(status);
  return false;
}

Status Meeting::check_settings(const wire::RankSettings& settings) const {
  const std::string who = rank_text(settings.rank);
  if (settings.world_size != static_cast<std::uint32_t>(size()))
    return {Errc::mismatch,
            who + " was started for a world of " + std::to_string(settings.world_size) + " ranks, " +
                rank_text(static_cast<std::uint64_t>(rank())) + " for one of " + std::to_string(size()) +
                "; give all ranks the same world size",
            static_cast<int>(std::min<std::uint32_t>(settings.rank, 1u << 30))};
  if (settings.rank >= settings.world_size)
    return {Errc::invalid_argument,
            who + " does not exist in a world of " + std::to_string(settings.world_size) + " ranks, which are numbered from 0"};
  if (settings.guests != static_cast<std::uint32_t>(world_.options().guests))
    return {Errc::mismatch,
            who + " was started for " + std::to_string(settings.guests) + " guests, " + rank_text(static_cast<std::uint64_t>(rank())) +
                " for " + std::to_string(world_.options().guests) + "; give all ranks the same (RINGLET_GUESTS)",
            static_cast<int>(settings.rank)};
  const auto policy = static_cast<std::uint32_t>(world_.options().placement.policy);
  if (settings.policy != policy && !world_.options().is_guest(static_cast<int>(settings.rank)))
    return {Errc::mismatch,
            who + " has the placement " + policy_text(settings.policy) + ", " + rank_text(static_cast<std::uint64_t>(rank())) + " " +
                policy_text(policy) + "; give all ranks the same (RINGLET_PLACEMENT)",
            static_cast<int>(settings.rank)};
  if (settings.rank == static_cast<std::uint32_t>(rank()) || world_.has_session(static_cast<int>(settings.rank)))
    return {Errc::invalid_argument, who + " is already there; each process needs a rank of its own"};
  return {};
}

void Meeting::on_seat_request(Session& session, const wire::SeatRequest& request) {
  if (rank() != 0)
    return reject(session,
                  {Errc::invalid_argument, "guests get their seat from rank 0; this is " + rank_text(static_cast<std::uint64_t>(rank()))});
  if (world_.options().guests == 0)
    return reject(session, {Errc::invalid_argument, "this group takes no guests; start its ranks with RINGLET_GUESTS"});
  if (!seats_ || seats_->full())
    return reject(session,
                  {Errc::invalid_argument, "all seats for guests are taken: the group takes " + std::to_string(world_.options().guests)});
  auto taken = take_stranger(session);
  seats_->sit(taken, request.name);
  begin_linking_if_complete();
}

void Meeting::on_join(Session& session, const wire::Join& join) {
  const int peer = static_cast<int>(join.settings.rank);
  const bool right = coordinates() && rank() == 0 && !world_.options().is_guest(peer) && join.port > 0 && join.port <= 65'535 &&
                     std::all_of(join.endpoints.begin(), join.endpoints.end(), is_dialable);
  if (!right) return reject(session, {Errc::invalid_argument, "this rank is not the coordinator of " + rank_text(join.settings.rank)});
  Address address{join.host, static_cast<std::uint16_t>(join.port)};
  if (address.host.empty()) {
    const auto seen = parse_address(session.peer_name());
    if (!seen.ok())
      return reject(session, {Errc::invalid_argument,
                              "the coordinator cannot see the address of " + rank_text(join.settings.rank) + "; give it one"});
    address.host = seen.value().host;
  }
  world_.adopt(take_stranger(session), peer);
  joined_[static_cast<std::size_t>(peer)] = wire::Member{join.settings.rank, address.host, address.port, "", join.endpoints};
  linked_[static_cast<std::size_t>(peer)] = true;
  begin_linking_if_complete();
}

void Meeting::on_connect(Session& session, const wire::Connect& connect) {
  const int peer = static_cast<int>(connect.settings.rank);
  if (Status status = check_settings(connect.settings); !status.ok()) return reject(session, status);  // it may have been held
  if (connect.world_id != options_.world_id) {
    const Status status{Errc::mismatch,
                        coordinates() ? rank_text(connect.settings.rank) + " belongs to another world"
                                      : rank_text(connect.settings.rank) + "'s hostfile differs from that of " +
                                            rank_text(static_cast<std::uint64_t>(rank())) + "; give all ranks the same",
                        peer};
    reject(session, status);
    if (!coordinates()) world_.fail(status);
    return;
  }
  if (peer < rank())
    return reject(session, {Errc::protocol_error,
                            "the higher rank dials, but " + rank_text(connect.settings.rank) + " dialled " + std::to_string(rank())});
  if (world_.options().is_guest(peer) && world_.rank_name(peer).empty())
    world_.set_rank_name(peer, name_for_people(connect.name, session.peer_name()));
  world_.adopt(take_stranger(session), peer);
  linked_[static_cast<std::size_t>(peer)] = true;
  world_.send_control(peer, wire::Welcome{static_cast<std::uint32_t>(rank())});
  begin_linking_if_complete();
  open_if_linked();
}

}  // namespace ringlet
