#include "core/rendezvous/knocks.hpp"

#include <algorithm>
#include <utility>

#include "core/ports/release_later.hpp"

namespace ringlet {

namespace {

/// Peers that have not said anything yet may come on top of those that wait.
constexpr std::size_t kMaxPeers = 2 * Knocks::kMaxWaiting;
constexpr std::size_t kMaxNameBytes = 256;

}  // namespace

void Knocks::receive(std::unique_ptr<Link> link) {
  if (peers_.size() + closing_.size() >= kMaxPeers) return;
  UnidentifiedPeer::Callbacks callbacks{
      [this](UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message) { on_message(connection, message); },
      [this](UnidentifiedPeer& connection) { remove(find(connection)); }};
  peers_.push_back({std::make_unique<UnidentifiedPeer>(loop_, std::move(link), session_, std::move(callbacks))});
}

std::size_t Knocks::waiting() const {
  return static_cast<std::size_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.state == State::waiting; }));
}

std::size_t Knocks::choose(std::size_t most, std::function<void(const std::string& name)> on_gone) {
  on_gone_ = std::move(on_gone);
  std::size_t chosen = 0;
  for (Peer& peer : peers_)
    if (peer.state == State::waiting && chosen < most) {
      peer.state = State::chosen;
      ++chosen;
    }
  tell_waiting();
  return chosen;
}

void Knocks::send_tickets(wire::Ticket first) {
  // One that has gone since it was chosen leaves its rank empty: on_gone() was called for it, so this growth has failed anyway.
  for (Peer& peer : peers_)
    if (peer.state == State::chosen) {
      peer.connection->send(first);
      ++first.rank;
    }
}

void Knocks::let_go() {
  on_gone_ = nullptr;
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const auto next = std::next(peer);
    if (peer->state == State::chosen) remove(peer);
    peer = next;
  }
}

void Knocks::on_message(UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message) {
  const auto peer = find(connection);
  const auto* knock = message ? std::get_if<wire::Knock>(&*message) : nullptr;
  if (knock == nullptr || peer->state != State::silent)
    return reject(peer, {Errc::protocol_error,
                         knock == nullptr ? "this is the door of a group that runs: processes that are to join it knock here (RINGLET_JOIN)"
                                          : "this process has knocked twice over one connection"});
  if (!open_) return send_on(peer);
  if (waiting() >= kMaxWaiting)
    return reject(peer, {Errc::cancelled, std::to_string(kMaxWaiting) + " processes wait at this door already; knock at another one"});
  peer->state = State::waiting;
  peer->name = knock->name.substr(0, kMaxNameBytes);
  peers_.splice(peers_.end(), peers_, peer);
  tell_waiting();
}

void Knocks::shut() {
  open_ = false;
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const auto next = std::next(peer);
    if (peer->state == State::waiting) send_on(peer);
    peer = next;
  }
}

void Knocks::send_on(Peers::iterator peer) {
  reject(peer, {Errc::cancelled, "the process at this door is not in a group; knock at another one"});
}

void Knocks::tell_waiting() {
  if (on_waiting_) on_waiting_(waiting());
}

void Knocks::reject(Peers::iterator peer, const Status& reason) { closing_.reject(take(peer), reason); }

void Knocks::remove(Peers::iterator peer) {
  const bool was_chosen = peer->state == State::chosen;
  const std::string name = peer->name;
  std::unique_ptr<Session> session = take(peer);
  session->close();
  release_later(loop_, std::move(session));
  if (was_chosen && on_gone_) on_gone_(name);
}

/// The connection may be inside a call of its own, so it is destroyed later.
std::unique_ptr<Session> Knocks::take(Peers::iterator peer) {
  std::unique_ptr<Session> session = peer->connection->release();
  release_later(loop_, std::move(peer->connection));
  peers_.erase(peer);
  tell_waiting();
  return session;
}

Knocks::Peers::iterator Knocks::find(const UnidentifiedPeer& connection) {
  return std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.connection.get() == &connection; });
}

}  // namespace ringlet
