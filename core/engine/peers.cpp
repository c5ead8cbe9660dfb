#include "core/engine/peers.hpp"

#include <utility>

namespace ringlet {

namespace {

std::string_view host_in(std::string_view name) { return name.substr(0, name.rfind(':')); }

}  // namespace

bool is_inside_machine(std::string_view medium, std::string_view own_name, std::string_view peer_name) {
  return medium == "memory" || (!own_name.empty() && host_in(own_name) == host_in(peer_name));
}

std::unique_ptr<Session> Peers::exchange_session(int rank, std::unique_ptr<Session> session) {
  return std::exchange(at(rank).session, std::move(session));
}

std::string_view Peers::media() const {
  std::string_view found = "none";
  for_each_session([&](const Session& session) { found = common_name(found, session.medium()); });
  return found;
}

std::string_view Peers::ciphers() const {
  std::string_view found = "none";
  for_each_session([&](const Session& session) { found = common_name(found, session.cipher()); });
  return found;
}

void Peers::set_path(int rank, const wire::Path& path, bool dialled) {
  at(rank).path = path;
  at(rank).dialled = dialled;
}

LinkReport Peers::link_with(int rank) const {
  const Peer& peer = at(rank);
  return {peer.session->own_name(), peer.session->peer_name(), peer.session->medium(), peer.session->cipher(), peer.path, peer.dialled};
}

std::string Peers::text_of(int rank) const { return "rank " + std::to_string(rank) + (name(rank).empty() ? "" : " (" + name(rank) + ")"); }

Status Peers::with_name(const Status& status) const {
  const int rank = status.rank();
  if (rank < 0 || static_cast<std::size_t>(rank) >= peers_.size() || name(rank).empty() ||
      status.text().find(name(rank)) != std::string::npos)
    return status;
  return {status.code(), status.text() + "; rank " + std::to_string(rank) + " is " + name(rank), rank};
}

void Peers::cut_off(int rank) {
  at(rank).cut_off = true;
  session(rank).close();
}

bool Peers::has_left(int rank) const {
  const Peer& peer = at(rank);
  return (peer.session && peer.session->goodbye_received()) || peer.cut_off;
}

}  // namespace ringlet
