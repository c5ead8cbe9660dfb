// The part of a meeting that accepts candidates for a link (link_race.hpp).
#include <utility>

#include "core/rendezvous/meeting.hpp"

namespace ringlet {

void Meeting::on_propose(Session& session, const wire::Propose& propose) {
  const std::string who = "rank " + std::to_string(propose.settings.rank);
  if (propose.world_id != options_.world_id || propose.settings.world_size != static_cast<std::uint32_t>(size()))
    return reject(session, {Errc::mismatch, who + " belongs to another world than the rank at this address"});
  if (propose.to != static_cast<std::uint32_t>(rank()))
    return reject(session, {Errc::mismatch, who + " looks for rank " + std::to_string(propose.to) + ", but at this address is rank " +
                                                std::to_string(rank())});
  const bool dials_here = propose.settings.rank > propose.to && propose.settings.rank < static_cast<std::uint32_t>(natives());
  if (!dials_here || linked_[propose.settings.rank])
    return reject(session, {Errc::invalid_argument, who + " is already there; each process needs a rank of its own"});
  if (!coordinates()) {
    if (Status status = check_settings(propose.settings); !status.ok()) {
      reject(session, status);
      return world_.fail(status);
    }
  }
  Stranger* const stranger = find_stranger(session);
  stranger->candidate_of = static_cast<int>(propose.settings.rank);
  say(session, wire::Welcome{static_cast<std::uint32_t>(rank())});
}

void Meeting::on_candidate_spoke(Stranger& stranger, const std::optional<wire::ControlMessage>& message) {
  if (message) {
    if (const auto* probe = std::get_if<wire::LinkProbe>(&*message);
        probe != nullptr && !probe->answer && probe->padding.size() <= LinkRace::kPadding && ++stranger.probes <= LinkRace::kProbes)
      return say(*stranger.session, wire::LinkProbe{probe->number, true, probe->padding});
    if (const auto* nominate = std::get_if<wire::Nominate>(&*message); nominate != nullptr && !stranger.asked) {
      stranger.asked = true;
      stranger.path = nominate->path;
      return say(*stranger.session, wire::Welcome{static_cast<std::uint32_t>(rank())});
    }
    if (const auto* welcome = std::get_if<wire::Welcome>(&*message);
        welcome != nullptr && stranger.asked && static_cast<int>(welcome->rank) == stranger.candidate_of)
      return on_confirmed(stranger);
  }
  drop_stranger(*stranger.session);
}

void Meeting::on_confirmed(Stranger& stranger) {
  const int peer = stranger.candidate_of;
  Session& session = *stranger.session;
  if (linked_[static_cast<std::size_t>(peer)])
    return reject(session,
                  {Errc::invalid_argument, "rank " + std::to_string(peer) + " is already there; each process needs a rank of its own"});
  const wire::Path path = stranger.path;
  if (world_.has_session(peer))
    let_go(world_.replace(take_stranger(session), peer));
  else
    world_.adopt(take_stranger(session), peer);
  world_.set_path(peer, path, false);
  linked_[static_cast<std::size_t>(peer)] = true;
  begin_linking_if_complete();
  open_if_linked();
}

}  // namespace ringlet
