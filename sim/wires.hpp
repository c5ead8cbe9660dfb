#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/link.hpp"
#include "sim/byte_queue.hpp"
#include "sim/clockwork.hpp"
#include "sim/machine_ports.hpp"

namespace ringlet::sim {

/// One direction of a connection. From the front, `bytes` holds the bytes that have arrived but are unread, those in flight, and those
/// accepted but not sent.
struct Pipe {
  ByteQueue bytes;
  std::size_t unread = 0;
  std::size_t in_flight = 0;
  std::size_t unsent = 0;
  std::size_t send_buffer = 0;
  std::size_t receive_buffer = 0;
  std::vector<std::size_t> flying;  // sizes of the pieces in flight, from `next_to_land`; 0 is the FIN
  std::size_t next_to_land = 0;
  std::size_t lost = 0;  // how many of them, from the first, have vanished and are sent again when the cut is mended
  Duration latency, jitter;
  std::uint64_t bytes_per_second = 1;
  std::uint32_t split_per_mille = 0;
  std::uint32_t stall_per_mille = 0;
  Range<Duration> stall;
  std::uint64_t taken_off = 0;  // bytes sent, whether they have arrived or not
  std::uint64_t arrived = 0;
  std::uint64_t reset_at = UINT64_MAX;
  Instant busy_until, last_arrival, stalled_until;
  Instant busy_since;      // where bytes are unsent or in flight
  Duration busy_before{};  // the time before `busy_since` in which there were some
  bool transmit_scheduled = false;
  bool fin_queued = false, fin_sent = false, fin_arrived = false;

  std::size_t room() const { return send_buffer - unsent; }
  std::size_t window() const { return receive_buffer - unread - in_flight; }
  bool busy() const { return unsent + in_flight > 0; }
  std::size_t land() {
    const std::size_t piece = flying[next_to_land++];
    if (next_to_land == flying.size()) {
      flying.clear();
      next_to_land = 0;
    }
    return piece;
  }
};

/// One end of a connection: the node's kernel and, behind it, the user.
struct End {
  std::uint32_t node = kNoNode;
  std::uint16_t port = 0;
  std::string host{};  // the address that was dialled, if it is not the node's first one
  LinkUser* user = nullptr;
  bool held = false;    // a SimLink exists
  bool closed = false;  // closed by the user, or because the node stopped
  bool reset = false;   // an RST has come; `unread` bytes may still be handed over
  bool hungry = false;  // to_send() may have something
  bool full = false;    // to_receive() had no room
  bool finishing = false;
  bool pull_scheduled = false, deliver_scheduled = false;  // an event is queued, held or running
  bool receive_ended = false;
};

/// A connection: pipe i carries the bytes from end i to the other end.
struct Connection {
  std::array<Pipe, 2> pipes;
  std::array<End, 2> ends;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint32_t listener = 0;  // the listener that it waits for or came from
  std::uint64_t serial = 0;    // counts all connections of the world; identifies this one in the trace
  bool in_use = false;
  bool cut = false;
};

/// All connections of a world.
class Wires {
 public:
  explicit Wires(Clockwork& clock) : clock_(clock) {}

  Connection& connect(std::uint32_t dialler, std::uint16_t dialler_port, const PathOptions& out, std::uint32_t listener,
                      std::uint16_t listener_port, const PathOptions& back, bool cut);
  /// Returns null if the connection no longer exists.
  Connection* find(std::uint32_t index, std::uint32_t generation);
  std::unique_ptr<Link> make_link(Connection& connection, std::size_t side, std::string own_name, std::string peer_name);
  void run(const Event& event);
  /// Deletes the connections that both ends have left. May only be called between two events.
  void sweep();

  // The functions of a SimLink.
  void start(Connection& connection, std::size_t side, LinkUser& user);
  void wake(Connection& connection, std::size_t side);
  void finish_sending(Connection& connection, std::size_t side);
  void release(Connection& connection, std::size_t side);
  SendCounters send_counters(const Connection& connection, std::size_t side) const;

  MachinePorts& ports() { return ports_; }

  // Faults.
  enum class Farewell : std::uint8_t { orderly, reset, none };
  /// Does what a kernel does when a process closes its socket.
  void close(Connection& connection, std::size_t side, Farewell farewell);
  /// Resets the connection at both ends.
  void reset(Connection& connection);
  void stall(Connection& connection, std::size_t from_side, Instant until);
  void set_cut(Connection& connection, bool cut);
  template <class Visit>
  void for_each(Visit visit) {
    for (Connection& connection : connections_) {
      if (connection.in_use) visit(connection);
    }
  }

 private:
  void draw(Pipe& pipe, const PathOptions& options);
  std::size_t piece_of(std::size_t most, std::uint32_t split_per_mille);
  void schedule_pull(Connection& connection, std::size_t side);
  void schedule_deliver(Connection& connection, std::size_t side);
  void pull(Connection& connection, std::size_t side, const Event& event);
  bool accept_once(Connection& connection, std::size_t side);
  void transmit(Connection& connection, std::size_t side);
  void schedule_transmit(Connection& connection, std::size_t side, Instant at);
  void fly(Connection& connection, std::size_t side, std::size_t bytes);
  void arrive(Connection& connection, std::size_t side);
  void deliver(Connection& connection, std::size_t side);
  bool deliver_once(Connection& connection, std::size_t side);
  void send_reset(Connection& connection, std::size_t side);
  void take_reset(Connection& connection, std::size_t side);
  void bury_if_left(Connection& connection);
  void trace(const Connection& connection, std::size_t side, std::uint64_t what, std::uint64_t detail);

  Clockwork& clock_;
  std::deque<Connection> connections_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> dead_;
  MachinePorts ports_;
  std::uint64_t next_serial_ = 1;
};

}  // namespace ringlet::sim
