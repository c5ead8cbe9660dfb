#include "tools/prediction/plan_cost.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <queue>
#include <stdexcept>

#include "core/plan/make_plan.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kAll = SIZE_MAX;

/// One rank's plan with its progress. Bytes of steps that are done count as kAll.
class PlannedRank {
 public:
  struct LaneState {
    PeerSteps steps;
    std::uint32_t sends = 0, receives = 0;  // that are done
    std::size_t sent = 0, received = 0;     // bytes of the next ones
    std::size_t frame = 0;                  // bytes of the frame that leaves which have not left
    bool queued = false;
    bool inside = false;  // whether the peer is on the same machine
  };
  struct Piece {
    std::uint32_t lane = 0;
    std::size_t bytes = 0;
    bool begins_frame = false;
  };

  PlannedRank(const Call& call, int rank, int size, const Topology& topology, const Granules& granules)
      : piece_(std::max(granules.piece_bytes, std::size_t{1})) {
    make_plan(call, rank, size, topology, true, plan_);
    const std::size_t most = std::min(granules.segment_bytes, plan_.segment_bytes);
    segment_ = std::max(most / call.element_bytes(), std::size_t{1}) * call.element_bytes();
    progress_.assign(plan_.receives.size() + plan_.combines.size(), 0);
    is_operand_.assign(progress_.size(), false);
    lane_of_peer_.assign(static_cast<std::size_t>(size), 0);
    for (const PeerSteps& steps : plan_.peers) {
      const auto lane = static_cast<std::uint32_t>(lanes_.size());
      lane_of_peer_[static_cast<std::size_t>(steps.peer)] = lane;
      lanes_.push_back({steps});
      lanes_.back().inside = topology.has_shared_machines() && topology.machine_of(steps.peer) == topology.machine_of(rank);
      sends_left_ += steps.send_count;
      receives_left_ += steps.receive_count;
      for (std::uint32_t i = 0; i < steps.send_count; ++i)
        if (const ProgressIndex after = plan_.sends[steps.first_send + i].after; after != kAtOnce) dependents_.push_back({after, lane});
    }
    std::sort(dependents_.begin(), dependents_.end());
    dependents_.erase(std::unique(dependents_.begin(), dependents_.end()), dependents_.end());
    // As the engine, from the next rank on.
    while (first_lane_ < lanes_.size() && peer_of(first_lane_) < rank) ++first_lane_;
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) enqueue((first_lane_ + i) % static_cast<std::uint32_t>(lanes_.size()));
    look_at_operands();
    combine();
  }

  std::size_t scratch_bytes() const { return plan_.scratch_bytes; }
  bool done() const { return sends_left_ == 0 && receives_left_ == 0 && combined_ == plan_.combines.size(); }
  int peer_of(std::uint32_t lane) const { return lanes_[lane].steps.peer; }
  std::uint32_t lane_of(int peer) const { return lane_of_peer_[static_cast<std::size_t>(peer)]; }

  /// Takes the next piece of a frame that may leave to peers on the same machine, or else to those on others, in turns of these peers, as
  /// the packets of several connections do; false if there is none.
  bool next_piece(bool inside, Piece& piece) {
    std::deque<std::uint32_t>& queue = queues_[inside ? 1 : 0];
    while (!queue.empty()) {
      const std::uint32_t lane = queue.front();
      queue.pop_front();
      LaneState& state = lanes_[lane];
      state.queued = false;
      if (state.sends == state.steps.send_count) continue;
      const Send& send = plan_.sends[state.steps.first_send + state.sends];
      const bool begins = state.frame == 0;
      if (begins) {
        const std::size_t left = send.from.bytes - state.sent, finished = progress_of(send.after);
        const std::size_t ready = std::min(finished, send.from.bytes) - state.sent;
        // As the engine's lanes: a frame is a whole segment or the end of a step.
        if (ready < left && ready < segment_) continue;
        if (left == 0 && finished != kAll) continue;
        state.frame = std::min(ready, segment_);
      }
      piece = {lane, std::min(state.frame, piece_), begins};
      state.frame -= piece.bytes;
      state.sent += piece.bytes;
      if (state.sent == send.from.bytes) {
        ++state.sends;
        state.sent = 0;
        --sends_left_;
      }
      enqueue(lane);
      if (sends_left_ == 0) combine();
      return true;
    }
    return false;
  }

  void receive(const Piece& piece) {
    LaneState& state = lanes_[piece.lane];
    const std::uint32_t index = state.steps.first_receive + state.receives;
    state.received += piece.bytes;
    const bool whole = state.received == plan_.receives[index].into.bytes;
    const std::size_t received = state.received;
    if (whole) {
      ++state.receives;
      state.received = 0;
      --receives_left_;
    }
    advance(static_cast<ProgressIndex>(index), whole ? kAll : received);
    combine();
  }

 private:
  std::size_t progress_of(ProgressIndex index) const { return index == kAtOnce ? kAll : progress_[static_cast<std::size_t>(index)]; }

  void enqueue(std::uint32_t lane) {
    if (lanes_[lane].queued || lanes_[lane].sends == lanes_[lane].steps.send_count) return;
    lanes_[lane].queued = true;
    queues_[lanes_[lane].inside ? 1 : 0].push_back(lane);
  }

  void advance(ProgressIndex index, std::size_t bytes) {
    std::size_t& own = progress_[static_cast<std::size_t>(index)];
    if (is_operand_[static_cast<std::size_t>(index)] && own == least_operand_) --at_least_;
    own = bytes;
    const auto first = std::lower_bound(dependents_.begin(), dependents_.end(), std::pair{index, 0U});
    const auto next = std::lower_bound(first, dependents_.end(), std::pair{index, first_lane_});
    const auto last = std::lower_bound(next, dependents_.end(), std::pair{index + 1, 0U});
    for (auto at = next; at != last; ++at) enqueue(at->second);
    for (auto at = first; at != next; ++at) enqueue(at->second);
  }

  /// What the next combine waits for: its operands' least progress, and how many of them have no more. So not all of them are looked at
  /// for each frame.
  void look_at_operands() {
    if (combined_ == plan_.combines.size()) return;
    const Combine& next = plan_.combines[combined_];
    least_operand_ = kAll;
    at_least_ = 0;
    for (std::uint32_t i = 0; i < next.operand_count; ++i) {
      const ProgressIndex after = plan_.operands[next.first_operand + i].after;
      if (after != kAtOnce) is_operand_[static_cast<std::size_t>(after)] = true;
      const std::size_t bytes = progress_of(after);
      at_least_ = bytes < least_operand_ ? 1 : at_least_ + (bytes == least_operand_ ? 1 : 0);
      least_operand_ = std::min(least_operand_, bytes);
    }
  }

  void combine() {
    while (combined_ < plan_.combines.size()) {
      const Combine& next = plan_.combines[combined_];
      if (next.after_sends && sends_left_ > 0) return;
      if (at_least_ == 0) look_at_operands();
      const std::size_t bytes = std::min(least_operand_, next.into.bytes);
      const bool whole = least_operand_ == kAll || bytes == next.into.bytes;
      const auto index = static_cast<ProgressIndex>(plan_.receives.size() + combined_);
      if (whole || bytes > progress_of(index)) advance(index, whole ? kAll : bytes);
      if (!whole) return;
      for (std::uint32_t i = 0; i < next.operand_count; ++i)
        if (const ProgressIndex after = plan_.operands[next.first_operand + i].after; after != kAtOnce)
          is_operand_[static_cast<std::size_t>(after)] = false;
      ++combined_;
      look_at_operands();
    }
  }

  const std::size_t piece_;
  std::size_t segment_ = 0;
  Plan plan_;
  std::vector<LaneState> lanes_;
  std::uint32_t first_lane_ = 0;  // of the peers after this rank
  std::vector<std::uint32_t> lane_of_peer_;
  std::vector<std::pair<ProgressIndex, std::uint32_t>> dependents_;  // lanes with a send after that step
  std::vector<std::size_t> progress_;                                // of the receives, then of the combines
  std::vector<bool> is_operand_;                                     // of the next combine
  std::array<std::deque<std::uint32_t>, 2> queues_;                  // lanes that may have a frame to send; those inside are the second
  std::size_t sends_left_ = 0, receives_left_ = 0, combined_ = 0;
  std::size_t least_operand_ = kAll, at_least_ = 0;
};

struct Event {
  enum class Kind : std::uint8_t { port_free, head_arrives, all_arrives } kind;
  double at;
  std::uint64_t number;  // events of one instant happen in the order in which they were made
  int rank;
  bool inside;  // whether it is about the port to ranks of the same machine
  PlannedRank::Piece piece;
  double tail_leaves = 0;  // when its last byte has left the other port

  friend bool operator>(const Event& one, const Event& other) { return one.at != other.at ? one.at > other.at : one.number > other.number; }
};

/// A port, and the ranks that send through it in turns.
struct Port {
  PortCost cost;
  std::vector<int> ranks;
  std::size_t turn = 0;  // index of the rank that is next
  bool sends = false;
  double entered = 0;  // when the last frame has entered it
};

class PlanRun {
 public:
  PlanRun(const Call& call, const Topology& topology, const std::vector<PortCost>& ports, const Granules& granules,
          const PortCost& within) {
    const int size = static_cast<int>(ports.size());
    ranks_.reserve(ports.size());
    for (int rank = 0; rank < size; ++rank) {
      ranks_.emplace_back(call, rank, size, topology, granules);
      cost_.most_scratch = std::max<std::uint64_t>(cost_.most_scratch, ranks_.back().scratch_bytes());
      if (topology.has_shared_machines()) inner_ports_.push_back({within, {rank}});
    }
    const int machines = topology.has_shared_machines() ? topology.machines() : size;
    for (int machine = 0; machine < machines; ++machine) {
      const std::vector<int> members = topology.has_shared_machines() ? topology.ranks_on(machine) : std::vector<int>{machine};
      ports_.push_back({ports[static_cast<std::size_t>(members.front())], members});
    }
    for (int rank = 0; rank < size; ++rank) machine_of_.push_back(topology.has_shared_machines() ? topology.machine_of(rank) : rank);
    bytes_out_.resize(ports_.size());
  }

  PlanCost run() {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) send(rank, 0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      happen(event);
    }
    for (const PlannedRank& rank : ranks_)
      if (!rank.done()) throw std::logic_error("the plans of this call do not end");
    cost_.most_bytes_out = *std::max_element(bytes_out_.begin(), bytes_out_.end());
    return cost_;
  }

 private:
  std::size_t machine_of(int rank) const { return static_cast<std::size_t>(machine_of_[static_cast<std::size_t>(rank)]); }
  Port& port(int rank, bool inside) { return inside ? inner_ports_[static_cast<std::size_t>(rank)] : ports_[machine_of(rank)]; }
  PlannedRank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void happen(const Event& event) {
    Port& own = port(event.rank, event.inside);
    switch (event.kind) {
      case Event::Kind::port_free:
        own.sends = false;
        send_through(event.rank, event.inside, event.at);
        break;
      case Event::Kind::head_arrives: {
        own.entered = std::max(own.entered, event.at) + (event.piece.begins_frame ? own.cost.per_frame : 0) +
                      own.cost.per_byte_in * static_cast<double>(event.piece.bytes);
        push({Event::Kind::all_arrives, std::max(own.entered, event.tail_leaves), 0, event.rank, event.inside, event.piece});
        break;
      }
      case Event::Kind::all_arrives:
        of(event.rank).receive(event.piece);
        cost_.nanoseconds = std::max(cost_.nanoseconds, event.at);
        send(event.rank, event.at);
        break;
    }
  }

  void send(int rank, double now) {
    send_through(rank, false, now);
    if (!inner_ports_.empty()) send_through(rank, true, now);
  }

  /// Sends the next piece of a rank that shares this rank's port, if the port is free and there is one.
  void send_through(int rank, bool inside, double now) {
    Port& own = port(rank, inside);
    for (std::size_t i = 0; i < own.ranks.size() && !own.sends; ++i) {
      const std::size_t place = (own.turn + i) % own.ranks.size();
      const int sender = own.ranks[place];
      PlannedRank::Piece piece;
      if (!of(sender).next_piece(inside, piece)) continue;
      own.turn = place + 1;
      own.sends = true;
      leave(sender, inside, piece, now);
    }
  }

  void leave(int rank, bool inside, const PlannedRank::Piece& piece, double now) {
    const PortCost& cost = port(rank, inside).cost;
    const double left = now + (piece.begins_frame ? cost.per_frame : 0) + cost.per_byte_out * static_cast<double>(piece.bytes);
    cost_.frames += piece.begins_frame ? 1 : 0;
    if (!inside) bytes_out_[machine_of(rank)] += piece.bytes;
    const int peer = of(rank).peer_of(piece.lane);
    push({Event::Kind::port_free, left, 0, rank, inside, {}});
    push({Event::Kind::head_arrives,
          now + cost.latency,
          0,
          peer,
          inside,
          {of(peer).lane_of(rank), piece.bytes, piece.begins_frame},
          left + cost.latency});
  }

  void push(Event event) {
    event.number = made_++;
    events_.push(event);
  }

  std::vector<PlannedRank> ranks_;
  std::vector<Port> ports_;        // to other machines, by machine
  std::vector<Port> inner_ports_;  // to ranks of the same machine, by rank; empty if each rank has a machine of its own
  std::vector<int> machine_of_;
  std::vector<std::uint64_t> bytes_out_;  // by machine
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t made_ = 0;
  PlanCost cost_;
};

}  // namespace

Granules granules_of(const Call& call, int size) {
  Granules granules;
  granules.piece_bytes = std::max(granules.piece_bytes, call.bytes() / static_cast<std::size_t>(size) / 8);
  return granules;
}

PlanCost cost_of(const Call& call, const Topology& topology, const std::vector<PortCost>& ports, const Granules& granules,
                 const PortCost& within) {
  if (ports.size() < 2) throw std::invalid_argument("a plan needs at least two ranks");
  return PlanRun(call, topology, ports, granules, within).run();
}

}  // namespace ringlet
