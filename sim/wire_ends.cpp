#include <algorithm>
#include <utility>

#include "sim/wires.hpp"

// How connections begin, fail and end.
namespace ringlet::sim {

namespace {

class SimLink final : public Link {
 public:
  SimLink(Wires& wires, Connection& connection, std::size_t side, std::string own_name, std::string peer_name)
      : wires_(wires), connection_(connection), side_(side), own_name_(std::move(own_name)), peer_name_(std::move(peer_name)) {}
  SimLink(const SimLink&) = delete;
  SimLink& operator=(const SimLink&) = delete;
  ~SimLink() override { wires_.release(connection_, side_); }

  void start(LinkUser& user) override { wires_.start(connection_, side_, user); }
  void wake() override { wires_.wake(connection_, side_); }
  void finish_sending() override { wires_.finish_sending(connection_, side_); }
  std::string peer_name() const override { return peer_name_; }
  std::string own_name() const override { return own_name_; }
  std::optional<SendCounters> send_counters() const override { return wires_.send_counters(connection_, side_); }

 private:
  Wires& wires_;
  Connection& connection_;  // lives at least until both ends are released
  std::size_t side_;
  const std::string own_name_, peer_name_;
};

}  // namespace

Connection& Wires::connect(std::uint32_t dialler, std::uint16_t dialler_port, const PathOptions& out, std::uint32_t listener,
                           std::uint16_t listener_port, const PathOptions& back, bool cut) {
  std::uint32_t index = static_cast<std::uint32_t>(connections_.size());
  if (free_.empty()) {
    connections_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Connection& connection = connections_[index];
  connection.index = index;
  connection.serial = next_serial_++;
  connection.in_use = true;
  connection.cut = cut;
  connection.ends[0].node = dialler;
  connection.ends[0].port = dialler_port;
  connection.ends[1].node = listener;
  connection.ends[1].port = listener_port;
  draw(connection.pipes[0], out);
  draw(connection.pipes[1], back);
  return connection;
}

void Wires::draw(Pipe& pipe, const PathOptions& options) {
  SimRandom& random = clock_.random();
  const auto at_least_one = [&random](Range<std::uint64_t> range) { return std::max<std::uint64_t>(random.in(range), 1); };
  pipe.send_buffer = static_cast<std::size_t>(at_least_one(options.send_buffer_bytes));
  pipe.receive_buffer = static_cast<std::size_t>(at_least_one(options.receive_buffer_bytes));
  pipe.latency = random.in(options.latency);
  pipe.jitter = options.jitter;
  pipe.bytes_per_second = at_least_one(options.bytes_per_second);
  pipe.split_per_mille = random.in(options.split_per_mille);
  pipe.stall_per_mille = options.stall_per_mille;
  pipe.stall = options.stall;
  if (options.reset_at_byte) pipe.reset_at = random.in(*options.reset_at_byte);
}

Connection* Wires::find(std::uint32_t index, std::uint32_t generation) {
  Connection& connection = connections_[index];
  return connection.in_use && connection.generation == generation ? &connection : nullptr;
}

std::unique_ptr<Link> Wires::make_link(Connection& connection, std::size_t side, std::string own_name, std::string peer_name) {
  connection.ends[side].held = true;
  return std::make_unique<SimLink>(*this, connection, side, std::move(own_name), std::move(peer_name));
}

void Wires::release(Connection& connection, std::size_t side) {
  connection.ends[side].held = false;
  close(connection, side, Farewell::orderly);
}

SendCounters Wires::send_counters(const Connection& connection, std::size_t side) const {
  const Pipe& out = connection.pipes[side];
  const Duration busy = out.busy_before + (out.busy() ? clock_.now() - out.busy_since : Duration{});
  return {out.arrived, static_cast<std::uint64_t>(busy.nanoseconds)};
}

void Wires::close(Connection& connection, std::size_t side, Farewell farewell) {
  End& end = connection.ends[side];
  Pipe& in = connection.pipes[1 - side];
  end.user = nullptr;
  if (!end.closed) {
    end.closed = true;
    const bool unread = in.unread > 0;
    in.bytes.drop_front(std::exchange(in.unread, 0));
    if (farewell == Farewell::none || end.reset) {
      // Nothing is sent.
    } else if (farewell == Farewell::reset || unread) {
      send_reset(connection, side);
    } else {
      connection.pipes[side].fin_queued = true;
      transmit(connection, side);
    }
  }
  bury_if_left(connection);
}

void Wires::bury_if_left(Connection& connection) {
  for (const End& end : connection.ends) {
    if (!end.closed || end.held) return;
  }
  if (connection.in_use) dead_.push_back(connection.index);
  connection.in_use = false;
}

void Wires::sweep() {
  for (const std::uint32_t index : dead_) {
    const std::uint32_t generation = connections_[index].generation + 1;
    connections_[index] = Connection{};
    connections_[index].generation = generation;
    free_.push_back(index);
  }
  dead_.clear();
}

void Wires::send_reset(Connection& connection, std::size_t side) {
  Pipe& out = connection.pipes[side];
  out.bytes.drop_back(std::exchange(out.unsent, 0));
  out.last_arrival = std::max(clock_.now() + out.latency, out.last_arrival);
  clock_.schedule(out.last_arrival, EventKind::reset, connection.index, connection.generation, 1 - side);
}

void Wires::take_reset(Connection& connection, std::size_t side) {
  End& end = connection.ends[side];
  if (connection.cut || end.closed || end.reset) return;
  end.reset = true;
  Pipe& in = connection.pipes[1 - side];
  // Some kernels still deliver bytes that came before the reset, and some drop them; half of the time they are dropped.
  if (clock_.random().chance(500)) in.bytes.drop_front(std::exchange(in.unread, 0));
  trace(connection, side, 5, in.unread);
  if (end.deliver_scheduled) return;
  if (clock_.running(end.node)) return deliver(connection, side);
  schedule_deliver(connection, side);
}

void Wires::reset(Connection& connection) {
  for (std::size_t side = 0; side < 2; ++side) {
    clock_.schedule(clock_.now(), EventKind::reset, connection.index, connection.generation, side);
  }
}

void Wires::stall(Connection& connection, std::size_t from_side, Instant until) {
  Pipe& pipe = connection.pipes[from_side];
  pipe.stalled_until = std::max(pipe.stalled_until, until);
}

void Wires::set_cut(Connection& connection, bool cut) {
  if (std::exchange(connection.cut, cut) == cut || cut) return;
  for (std::size_t side = 0; side < 2; ++side) {
    Pipe& pipe = connection.pipes[side];
    for (; pipe.lost > 0; --pipe.lost) {
      pipe.last_arrival = std::max(clock_.now() + pipe.latency, pipe.last_arrival);
      clock_.schedule(pipe.last_arrival, EventKind::arrive, connection.index, connection.generation, side);
    }
    schedule_transmit(connection, side, clock_.now());
  }
}

}  // namespace ringlet::sim
