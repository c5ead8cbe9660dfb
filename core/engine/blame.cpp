#include "core/engine/blame.hpp"

namespace ringlet {

/// Newcomers do not know whether another one fits.
Blame::Blame(const WorldOptions& options) : options_(options) {
  const int members = options.natives() - options.newcomers;
  first_on_probation_ = options.rank < members ? members : options.size;
}

Status Blame::of_abort(int peer, const std::string& name, const Status& status) const {
  const bool revokes = status.code() == Errc::cancelled && status.rank() == peer;
  if (is_guest_of_elastic(peer) && !revokes) return {Errc::peer_lost, name + " has left: " + status.text(), peer};
  if (status.code() == Errc::mismatch && is_on_probation(peer)) return {Errc::mismatch, status.text(), peer};
  const int blamed = status.rank() < options_.size ? status.rank() : -1;
  // This rank has not seen what it is told about another one; a member may say anything.
  const bool hearsay = blamed >= 0 && blamed != peer && (status.code() == Errc::peer_lost || status.code() == Errc::protocol_error);
  return {status.code(), status.text() + (hearsay ? "; so says rank " + std::to_string(peer) : ""), blamed};
}

Status Blame::as_loss(const Status& status) const {
  const bool of_guest = is_guest_of_elastic(status.rank()) && status.code() != Errc::cancelled;
  const bool of_newcomer = is_on_probation(status.rank()) && status.code() == Errc::mismatch;
  return of_guest || of_newcomer ? Status{Errc::peer_lost, status.text(), status.rank()} : status;
}

}  // namespace ringlet
