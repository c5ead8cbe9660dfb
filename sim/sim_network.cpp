#include "sim/sim_network.hpp"

#include <utility>

#include "sim/switchboard.hpp"

namespace ringlet {

struct SimWorld::Machinery {
  explicit Machinery(const SimOptions& options) : clock(options), wires(clock), board(clock, wires, options.paths) {}

  struct Watch {
    std::function<bool()> condition;
    Task happen;
  };

  sim::Clockwork clock;
  sim::Wires wires;
  sim::Switchboard board;
  std::vector<Watch> watches;
  std::uint64_t event_count = 0;
};

namespace {

class SimNetwork final : public Network {
 public:
  SimNetwork(sim::Switchboard& board, std::uint32_t node) : board_(board), node_(node) {}
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;
  ~SimNetwork() override { board_.drop_dials(*this); }
  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override {
    return board_.listen(node_, address, std::move(on_accept));
  }
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override {
    board_.dial(*this, node_, address, timeout, std::move(on_dialled));
  }

 private:
  sim::Switchboard& board_;
  std::uint32_t node_;
};

}  // namespace

SimNode::SimNode(SimWorld& world, std::uint32_t index, std::string host)
    : world_(world),
      index_(index),
      host_(std::move(host)),
      loop_(std::make_unique<sim::SimLoop>(world.machinery_->clock, index)),
      network_(open_network()) {}

SimNode::~SimNode() = default;

std::unique_ptr<Network> SimNode::open_network() { return std::make_unique<SimNetwork>(world_.machinery_->board, index_); }

SimWorld::SimWorld(SimOptions options) : machinery_(std::make_unique<Machinery>(options)) {}
SimWorld::SimWorld(std::uint64_t seed) : SimWorld(SimOptions{.seed = seed, .paths = {}}) {}

SimWorld::~SimWorld() {
  // Tasks and callbacks may own links and listeners, whose destructors use the machinery.
  machinery_->watches.clear();
  machinery_->board.drop_callbacks();
  machinery_->clock.drop_tasks();
}

SimNode& SimWorld::add_node() {
  const std::uint32_t index = machinery_->clock.add_node();
  machinery_->board.add_node();
  nodes_.push_back(std::make_unique<SimNode>(*this, index, machinery_->board.host(index)));
  return *nodes_.back();
}

SimNode& SimWorld::add_node_beside(const SimNode& other) {
  const std::uint32_t index = machinery_->clock.add_node();
  machinery_->board.add_node_beside(other.index());
  nodes_.push_back(std::make_unique<SimNode>(*this, index, machinery_->board.host(index)));
  return *nodes_.back();
}

Instant SimWorld::now() const { return machinery_->clock.now(); }
std::uint64_t SimWorld::event_count() const { return machinery_->event_count; }
std::uint64_t SimWorld::trace_hash() const { return machinery_->clock.trace_hash(); }
PathOptions& SimWorld::path(const SimNode& from, const SimNode& to) { return machinery_->board.path(from.index(), to.index()); }

PathOptions& SimWorld::add_address(const SimNode& node, const std::string& host) {
  return machinery_->board.add_address(node.index(), host);
}

void SimWorld::limit_port(const SimNode& node, std::uint64_t bytes_per_second) {
  machinery_->wires.ports().limit(node.index(), bytes_per_second);
}

RunEnd SimWorld::run_until_idle(RunLimits limits) {
  return run_until([] { return false; }, limits);
}

RunEnd SimWorld::run_until(const std::function<bool()>& condition, RunLimits limits) {
  const Instant end = now() + limits.time;
  const std::uint64_t last_event = event_count() + limits.events;
  while (!condition()) {
    if (machinery_->clock.idle()) return RunEnd::idle;
    if (machinery_->clock.next_instant() > end) return RunEnd::time_limit;
    if (event_count() >= last_event) return RunEnd::event_limit;
    step();
  }
  return RunEnd::done;
}

void SimWorld::run_for(Duration duration) {
  const Instant end = now() + duration;
  while (!machinery_->clock.idle() && machinery_->clock.next_instant() <= end) step();
  machinery_->clock.advance(end);
}

/// Runs one event. An event that was cancelled does not move the clock.
void SimWorld::step() {
  sim::Clockwork& clock = machinery_->clock;
  const sim::Event event = clock.pop();
  switch (event.kind) {
    case sim::EventKind::timer:
      if (clock.timer_is_stale(event)) return clock.skip_stale_timer();
      clock.advance(event.at);
      clock.run_timer(event);
      break;
    case sim::EventKind::deferred:
      clock.advance(event.at);
      clock.run_deferred(event);
      break;
    case sim::EventKind::dial_arrive:
    case sim::EventKind::dial_done:
    case sim::EventKind::dial_timeout:
      if (machinery_->board.dial_is_over(event)) return;
      [[fallthrough]];
    case sim::EventKind::accept:
      clock.advance(event.at);
      machinery_->board.run(event);
      break;
    default:
      clock.advance(event.at);
      machinery_->wires.run(event);
  }
  ++machinery_->event_count;
  machinery_->wires.sweep();
  if (!machinery_->watches.empty()) check_watches();
}

void SimWorld::check_watches() {
  std::vector<Machinery::Watch>& watches = machinery_->watches;
  for (std::size_t index = 0; index < watches.size();) {
    if (!watches[index].condition()) {
      ++index;
      continue;
    }
    const Task happen = std::move(watches[index].happen);
    watches.erase(watches.begin() + static_cast<std::ptrdiff_t>(index));
    happen();
  }
}

void SimFault::now() { in({}); }
void SimFault::at(Instant instant) { in(instant - world_.now()); }
void SimFault::in(Duration delay) { world_.machinery_->clock.after(sim::kNoNode, delay, std::move(happen_)); }
void SimFault::when(std::function<bool()> condition) { world_.machinery_->watches.push_back({std::move(condition), std::move(happen_)}); }

SimFault SimWorld::stop(const SimNode& node, StopKind kind) {
  return SimFault(*this, [this, index = node.index(), kind] {
    using Farewell = sim::Wires::Farewell;
    machinery_->clock.stop(index);
    if (kind == StopKind::falls_silent) machinery_->board.isolate(index, true);
    machinery_->board.abandon(index, kind == StopKind::closes_links   ? Farewell::orderly
                                     : kind == StopKind::resets_links ? Farewell::reset
                                                                      : Farewell::none);
  });
}

SimFault SimWorld::freeze(const SimNode& node) {
  return SimFault(*this, [this, index = node.index()] { machinery_->clock.freeze(index); });
}

SimFault SimWorld::resume(const SimNode& node) {
  return SimFault(*this, [this, index = node.index()] { machinery_->clock.resume(index); });
}

SimFault SimWorld::cut(const SimNode& one, const SimNode& other) {
  return SimFault(*this, [this, a = one.index(), b = other.index()] { machinery_->board.set_cut(a, b, true); });
}

SimFault SimWorld::mend(const SimNode& one, const SimNode& other) {
  return SimFault(*this, [this, a = one.index(), b = other.index()] { machinery_->board.set_cut(a, b, false); });
}

SimFault SimWorld::isolate(const SimNode& node) {
  return SimFault(*this, [this, index = node.index()] { machinery_->board.isolate(index, true); });
}

SimFault SimWorld::rejoin(const SimNode& node) {
  return SimFault(*this, [this, index = node.index()] { machinery_->board.isolate(index, false); });
}

SimFault SimWorld::stall(const SimNode& from, const SimNode& to, Duration duration) {
  return SimFault(*this, [this, a = from.index(), b = to.index(), duration] {
    machinery_->wires.for_each([&](sim::Connection& connection) {
      for (std::size_t side = 0; side < 2; ++side) {
        if (connection.ends[side].node == a && connection.ends[1 - side].node == b) {
          machinery_->wires.stall(connection, side, now() + duration);
        }
      }
    });
  });
}

SimFault SimWorld::reset(const SimNode& one, const SimNode& other) {
  return SimFault(*this, [this, a = one.index(), b = other.index()] {
    machinery_->wires.for_each([&](sim::Connection& connection) {
      const std::uint32_t dialler = connection.ends[0].node;
      const std::uint32_t listener = connection.ends[1].node;
      if ((dialler == a && listener == b) || (dialler == b && listener == a)) machinery_->wires.reset(connection);
    });
  });
}

}  // namespace ringlet
