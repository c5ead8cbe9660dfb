#include "core/engine/blame.hpp"

namespace ringlet {

Status blame_for_abort(const WorldOptions& options, int peer, const std::string& name, const Status& status) {
  const bool revokes = status.code() == Errc::cancelled && status.rank() == peer;
  if (options.elastic && options.is_guest(peer) && !revokes) return {Errc::peer_lost, name + " has left: " + status.text(), peer};
  const bool is_its_own = status.code() == Errc::mismatch && options.has_just_joined(peer);
  const int blamed = is_its_own ? peer : status.rank() < options.size ? status.rank() : -1;
  // This rank has not seen what it is told about another one; a member may say anything.
  const bool hearsay = blamed >= 0 && blamed != peer && (status.code() == Errc::peer_lost || status.code() == Errc::protocol_error);
  return {status.code(), status.text() + (hearsay ? "; so says rank " + std::to_string(peer) : ""), blamed};
}

Status as_loss(const WorldOptions& options, const Status& status) {
  const bool of_guest = options.elastic && options.is_guest(status.rank()) && status.code() != Errc::cancelled;
  const bool of_joined = options.has_just_joined(status.rank()) && status.code() == Errc::mismatch;
  return of_guest || of_joined ? Status{Errc::peer_lost, status.text(), status.rank()} : status;
}

}  // namespace ringlet
