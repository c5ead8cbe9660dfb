#include "core/rendezvous/candidate_responder.hpp"

#include "core/rendezvous/link_measurement.hpp"

namespace ringlet {

CandidateResponder::Reaction CandidateResponder::on_message(const wire::ControlMessage& message) {
  using Kind = Reaction::Kind;
  if (const auto* probe = std::get_if<wire::LinkProbe>(&message)) {
    const bool allowed = !probe->answer && probe->padding.size() <= LinkMeasurement::kPadding && ++probes_ <= LinkMeasurement::kProbes;
    return allowed ? Reaction{Kind::answer, wire::LinkProbe{probe->number, true, probe->padding}} : Reaction{};
  }
  if (const auto* nominate = std::get_if<wire::Nominate>(&message); nominate != nullptr && !nominated_) {
    nominated_ = true;
    path_ = nominate->path;
    return {Kind::answer, wire::Welcome{static_cast<std::uint32_t>(own_rank_)}};
  }
  const auto* welcome = std::get_if<wire::Welcome>(&message);
  const bool confirms = welcome != nullptr && nominated_ && welcome->rank == static_cast<std::uint32_t>(peer_);
  return confirms ? Reaction{Kind::confirmed} : Reaction{};
}

}  // namespace ringlet
