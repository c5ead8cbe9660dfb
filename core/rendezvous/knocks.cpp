#include "core/rendezvous/knocks.hpp"

#include <algorithm>
#include <utility>

#include "core/ports/release_later.hpp"
#include "core/rendezvous/seats.hpp"

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

std::size_t Knocks::count_waiting() const {
  return static_cast<std::size_t>(
      std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.state == State::waiting; }));
}

std::size_t Knocks::waiting() const {
  return static_cast<std::size_t>(std::count_if(peers_.begin(), peers_.end(), [this](const Peer& peer) { return may_be_chosen(peer); }));
}

bool Knocks::may_be_chosen(const Peer& peer) const { return peer.state == State::waiting && (!peer.is_guest || guests_have_gathered()); }

bool Knocks::guests_have_gathered() const {
  std::optional<Instant> first, last;
  for (const Peer& peer : peers_) {
    if (!peer.is_guest || peer.state != State::waiting) continue;
    const Instant since = std::max(peer.since, expected_since_);
    first = std::min(first.value_or(since), since);
    last = std::max(last.value_or(since), since);
  }
  if (!first) return false;
  return expected_are_here_ || loop_.now() - *last >= kGathering || loop_.now() - *first >= kLongestGathering;
}

void Knocks::expect_guests(std::size_t count) {
  expected_guests_ = count;
  expected_since_ = loop_.now();
  expected_are_here_ = false;
  loop_.after(kGathering, guard_.wrap([this] { tell_waiting(); }));
  tell_waiting();
}

Knocks::Chosen Knocks::choose(std::size_t most, std::function<void(const std::string& name)> on_gone) {
  on_gone_ = std::move(on_gone);
  Chosen chosen;
  // Guests that gather here yet, too: they may have gathered at another rank's door, and those left out would soon send these away.
  for (Peer& peer : peers_) {
    if (peer.state != State::waiting || chosen.processes + chosen.guests >= most) continue;
    peer.state = State::chosen;
    ++(peer.is_guest ? chosen.guests : chosen.processes);
  }
  expected_are_here_ = false;
  tell_waiting();
  return chosen;
}

void Knocks::send_tickets(wire::Ticket first) {
  wire::Ticket for_guests = first;
  for_guests.rank = for_guests.world_size - for_guests.guests;
  // One that has gone since it was chosen leaves its rank empty: on_gone() was called for it, so this growth has failed anyway.
  for (Peer& peer : peers_) {
    if (peer.state != State::chosen) continue;
    peer.connection->send(peer.is_guest ? for_guests : first);
    if (!peer.is_guest) ++first.rank;
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
  if (const auto* request = message ? std::get_if<wire::SeatRequest>(&*message) : nullptr)
    if (peer->state == State::silent) return receive_guest(peer, *request);
  const auto* knock = message ? std::get_if<wire::Knock>(&*message) : nullptr;
  if (knock == nullptr || peer->state != State::silent)
    return reject(peer, {Errc::protocol_error,
                         knock == nullptr ? "this is the door of a group that runs: processes that are to join it knock here (RINGLET_JOIN)"
                                          : "this process has knocked twice over one connection"});
  if (!open_) return send_on(peer);
  if (count_waiting() >= kMaxWaiting)
    return reject(peer, {Errc::cancelled, std::to_string(kMaxWaiting) + " processes wait at this door already; knock at another one"});
  let_wait(peer, knock->name.substr(0, kMaxNameBytes));
}

/// A guest that cannot wait here is not told why: it comes again.
void Knocks::receive_guest(Peers::iterator peer, const wire::SeatRequest& request) {
  if (!open_ || count_waiting() >= kMaxWaiting) return remove(peer);
  peer->is_guest = true;
  if (expected_guests_ > 0 && --expected_guests_ == 0) expected_are_here_ = true;
  peer->connection->send(wire::Welcome{});
  loop_.after(kGathering, guard_.wrap([this] { tell_waiting(); }));
  let_wait(peer, name_for_people(request.name, peer->connection->name()));
}

void Knocks::let_wait(Peers::iterator peer, const std::string& name) {
  peer->state = State::waiting;
  peer->name = name;
  peer->since = loop_.now();
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
  if (peer->is_guest) return remove(peer);
  reject(peer, {Errc::cancelled, "the process at this door is not in a group; knock at another one"});
}

void Knocks::tell_waiting() {
  if (callbacks_.on_waiting) callbacks_.on_waiting(waiting());
  if (!callbacks_.on_guests) return;
  std::vector<std::string> names;
  for (const Peer& peer : peers_)
    if (peer.is_guest) names.push_back(peer.name);
  callbacks_.on_guests(names);
}

void Knocks::reject(Peers::iterator peer, const Status& reason) {
  take(peer, [&](std::unique_ptr<Session> session) { closing_.reject(std::move(session), reason); });
}

void Knocks::remove(Peers::iterator peer) {
  take(peer, [this](std::unique_ptr<Session> session) {
    session->close();
    release_later(loop_, std::move(session));
  });
}

/// Forgets the peer, whose session `close` gets. The connection may be inside a call of its own, so it is destroyed later.
template <class Close>
void Knocks::take(Peers::iterator peer, Close close) {
  const bool was_chosen = peer->state == State::chosen;
  const std::string name = peer->name;
  std::unique_ptr<Session> session = peer->connection->release();
  release_later(loop_, std::move(peer->connection));
  peers_.erase(peer);
  tell_waiting();
  close(std::move(session));
  if (was_chosen && on_gone_) on_gone_(name);
}

Knocks::Peers::iterator Knocks::find(const UnidentifiedPeer& connection) {
  return std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.connection.get() == &connection; });
}

}  // namespace ringlet
