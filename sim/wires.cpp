#include "sim/wires.hpp"

#include <algorithm>
#include <utility>

// How bytes travel through connections.
namespace ringlet::sim {

namespace {

template <class Part>
std::size_t total_size(std::span<const Part> parts) {
  std::size_t total = 0;
  for (const Part& part : parts) total += part.size();
  return total;
}

}  // namespace

void Wires::run(const Event& event) {
  Connection* connection = find(event.index, event.generation);
  if (connection == nullptr) return;
  switch (event.kind) {
    case EventKind::pull:
      return pull(*connection, event.side, event);
    case EventKind::deliver:
      if (!clock_.admits(connection->ends[event.side].node, event)) return;
      connection->ends[event.side].deliver_scheduled = false;
      return deliver(*connection, event.side);
    case EventKind::transmit:
      connection->pipes[event.side].transmit_scheduled = false;
      return transmit(*connection, event.side);
    case EventKind::arrive:
      return arrive(*connection, event.side);
    default:
      return take_reset(*connection, event.side);
  }
}

void Wires::start(Connection& connection, std::size_t side, LinkUser& user) {
  End& end = connection.ends[side];
  if (end.closed) return;
  end.user = &user;
  end.full = end.receive_ended = false;
  schedule_deliver(connection, side);
}

void Wires::wake(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  if (end.closed) return;
  if (std::exchange(end.full, false)) schedule_deliver(connection, side);
  if (end.reset || connection.pipes[side].fin_queued) return;
  end.hungry = true;
  schedule_pull(connection, side);
}

void Wires::finish_sending(Connection& connection, std::size_t side) {
  connection.ends[side].finishing = true;
  wake(connection, side);
}

/// Schedules a pull if the pipe has room. Without room there is nothing to schedule, because transmit() pulls when it has made room.
void Wires::schedule_pull(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  if (end.pull_scheduled || connection.pipes[side].room() == 0) return;
  end.pull_scheduled = true;
  clock_.schedule(clock_.now() + clock_.loop_delay(), EventKind::pull, connection.index, connection.generation, side);
}

void Wires::schedule_deliver(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  if (end.deliver_scheduled) return;
  end.deliver_scheduled = true;
  clock_.schedule(clock_.now() + clock_.loop_delay(), EventKind::deliver, connection.index, connection.generation, side);
}

void Wires::pull(Connection& connection, std::size_t side, const Event& event) {
  End& end = connection.ends[side];
  if (!clock_.admits(end.node, event)) return;
  // pull_scheduled stays set during the loop, because the calls below need no event of their own.
  while (end.user != nullptr && end.hungry && !end.reset && connection.pipes[side].room() > 0) {
    if (!accept_once(connection, side)) break;
  }
  end.pull_scheduled = false;
  if (end.user != nullptr && end.hungry && !end.reset) schedule_pull(connection, side);
}

/// Calls to_send() once and accepts bytes from it. Returns false if the next pull must come later.
bool Wires::accept_once(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  Pipe& out = connection.pipes[side];
  end.hungry = false;
  const std::span<const ConstBytes> parts = end.user->to_send();
  if (end.user == nullptr) return false;
  const std::size_t offered = total_size(parts);
  if (offered == 0) {
    out.fin_queued = out.fin_queued || (end.finishing && !end.hungry);
    transmit(connection, side);
    return false;
  }
  end.hungry = true;
  const std::size_t most = std::min(offered, out.room());
  const std::size_t accepted = piece_of(most, out.split_per_mille);
  std::size_t left = accepted;
  for (const ConstBytes part : parts) {
    const std::size_t now = std::min(left, part.size());
    out.bytes.append(part.first(now));
    left -= now;
  }
  if (!out.busy()) out.busy_since = clock_.now();
  out.unsent += accepted;
  transmit(connection, side);
  end.user->sent(accepted);
  return accepted == most;
}

/// Sends the next piece if the direction is free, and asks the sender for more.
void Wires::transmit(Connection& connection, std::size_t side) {
  Pipe& out = connection.pipes[side];
  End& end = connection.ends[side];
  if (out.transmit_scheduled || connection.cut || end.reset) return;
  const bool fin_is_next = out.unsent == 0 && out.fin_queued && !out.fin_sent;
  if (!fin_is_next && (out.unsent == 0 || out.window() == 0)) return;
  const Instant free_at = std::max(out.busy_until, out.stalled_until);
  if (free_at > clock_.now()) return schedule_transmit(connection, side, free_at);
  if (clock_.random().chance(out.stall_per_mille)) {
    out.stalled_until = clock_.now() + clock_.random().in(out.stall);
    return schedule_transmit(connection, side, out.stalled_until);
  }
  if (fin_is_next) {
    out.fin_sent = true;
    return fly(connection, side, 0);
  }
  std::size_t bytes = piece_of(std::min(out.unsent, out.window()), out.split_per_mille);
  if (out.taken_off < out.reset_at) bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, out.reset_at - out.taken_off));
  out.unsent -= bytes;
  out.in_flight += bytes;
  out.taken_off += bytes;
  fly(connection, side, bytes);
  if (out.unsent > 0 || out.fin_queued) schedule_transmit(connection, side, out.busy_until);
  if (end.hungry && end.user != nullptr) schedule_pull(connection, side);
}

void Wires::schedule_transmit(Connection& connection, std::size_t side, Instant at) {
  if (connection.pipes[side].transmit_scheduled) return;
  connection.pipes[side].transmit_scheduled = true;
  clock_.schedule(at, EventKind::transmit, connection.index, connection.generation, side);
}

void Wires::fly(Connection& connection, std::size_t side, std::size_t bytes) {
  Pipe& out = connection.pipes[side];
  const auto nanoseconds = static_cast<std::int64_t>(std::uint64_t{bytes} * 1'000'000'000 / out.bytes_per_second);
  const Instant begins = std::max(out.busy_until, clock_.now());
  const std::uint32_t sender = connection.ends[side].node, receiver = connection.ends[1 - side].node;
  out.busy_until = std::max(begins + Duration{nanoseconds}, ports_.leave(sender, receiver, begins, bytes));
  const Instant through = out.busy_until + out.latency + clock_.random().in(Range<Duration>{{}, out.jitter});
  const Instant taken = ports_.enter(sender, receiver, begins + out.latency, bytes);
  out.last_arrival = std::max({through, taken, out.last_arrival});
  out.flying.push_back(bytes);
  clock_.schedule(out.last_arrival, EventKind::arrive, connection.index, connection.generation, side);
}

void Wires::arrive(Connection& connection, std::size_t side) {
  Pipe& pipe = connection.pipes[side];
  End& receiver = connection.ends[1 - side];
  // A reset overtakes the bytes that are in flight.
  if (receiver.reset) return;
  if (connection.cut) {
    ++pipe.lost;
    return;
  }
  const std::size_t bytes = pipe.land();
  pipe.in_flight -= bytes;
  if (bytes > 0 && !pipe.busy()) pipe.busy_before = pipe.busy_before + (clock_.now() - pipe.busy_since);
  trace(connection, side, 1, bytes);
  if (receiver.closed) {
    pipe.bytes.drop_front(bytes);
    if (bytes > 0) send_reset(connection, 1 - side);
    return;
  }
  pipe.fin_arrived = bytes == 0;
  const auto before_reset = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, pipe.reset_at - pipe.arrived));
  pipe.unread += before_reset;
  pipe.arrived += before_reset;
  if (pipe.arrived == pipe.reset_at) return reset(connection);
  if (receiver.deliver_scheduled) return;
  if (clock_.running(receiver.node)) return deliver(connection, 1 - side);
  schedule_deliver(connection, 1 - side);
}

/// Delivers to the end `side` what has arrived for it: the bytes first, then the end or the failure.
void Wires::deliver(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  Pipe& in = connection.pipes[1 - side];
  while (end.user != nullptr && in.unread > 0 && !end.full) {
    if (!deliver_once(connection, side)) return;
  }
  if (end.user == nullptr) return;
  if (end.reset) {
    trace(connection, side, 2, 0);
    LinkUser& user = *end.user;
    end.user = nullptr;
    return user.link_failed(Status(Errc::peer_lost, "the connection was reset by the peer"));
  }
  if (in.fin_arrived && !end.receive_ended && !end.full) {
    trace(connection, side, 3, 0);
    end.receive_ended = true;
    end.user->receive_ended();
  }
}

/// Makes one read. Returns false if the rest must come later.
bool Wires::deliver_once(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  Pipe& in = connection.pipes[1 - side];
  const std::span<const Bytes> parts = end.user->to_receive();
  if (end.user == nullptr) return false;
  const std::size_t wanted = total_size(parts);
  end.full = wanted == 0;
  if (end.full) return true;
  const std::size_t most = std::min(wanted, in.unread);
  const std::size_t bytes = piece_of(most, in.split_per_mille);
  std::size_t left = bytes;
  for (const Bytes part : parts) {
    const Bytes filled = part.first(std::min(left, part.size()));
    if (filled.empty()) continue;
    in.bytes.take(filled);
    trace(connection, side, 4, hash_bytes(filled));
    left -= filled.size();
  }
  // The sender learns of the larger window with the acknowledgement.
  if (in.window() == 0) schedule_transmit(connection, 1 - side, clock_.now() + in.latency);
  in.unread -= bytes;
  end.user->received(bytes);
  if (bytes == most) return true;
  if (end.user != nullptr) schedule_deliver(connection, side);
  return false;
}

std::size_t Wires::piece_of(std::size_t most, std::uint32_t split_per_mille) {
  SimRandom& random = clock_.random();
  if (most <= 1 || !random.chance(split_per_mille)) return most;
  // Small cuts test the boundaries of headers, the other ones those of payloads.
  return 1 + random.below(random.chance(500) ? std::min<std::size_t>(most, 48) : most);
}

void Wires::trace(const Connection& connection, std::size_t side, std::uint64_t what, std::uint64_t detail) {
  clock_.trace(static_cast<std::uint64_t>(clock_.now().nanoseconds));
  clock_.trace((connection.serial << 8) | (side << 4) | what);
  clock_.trace(detail);
}

}  // namespace ringlet::sim
