#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"
#include "sim/sim_options.hpp"

namespace ringlet {

class SimWorld;

/// One simulated machine: a loop and a network, as a native program has them. Owned by its world.
class SimNode {
 public:
  SimNode(SimWorld& world, std::uint32_t index, std::string host);
  ~SimNode();
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  EventLoop& loop() { return *loop_; }
  Network& network() { return *network_; }
  /// Another network of this machine, for a user who destroys it.
  std::unique_ptr<Network> open_network();
  /// "10.0.0.1" for the first node.
  const std::string& host() const { return host_; }
  std::uint32_t index() const { return index_; }

 private:
  SimWorld& world_;
  std::uint32_t index_;
  std::string host_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Network> network_;
};

/// When a fault happens: world.stop(node).at(instant). It happens between two callbacks, never inside one; exactly one call.
class [[nodiscard]] SimFault {
 public:
  SimFault(SimWorld& world, Task happen) : world_(world), happen_(std::move(happen)) {}
  /// As soon as the world runs.
  void now();
  void at(Instant instant);
  void in(Duration delay);
  /// Once `condition` holds after an event.
  void when(std::function<bool()> condition);

 private:
  SimWorld& world_;
  Task happen_;
};

/// How a stopped node goes: the process ends and its kernel closes the links in order or resets them, or the power fails and nothing is
/// sent.
enum class StopKind : std::uint8_t { closes_links, resets_links, falls_silent };

/// Nodes on a simulated TCP network with one virtual clock. One thread; the same seed and the same calls give the same run.
/// Links, listeners and what else came from a node die before the world. A user that breaks a port's contract stops the program.
class SimWorld {
 public:
  explicit SimWorld(SimOptions options);
  explicit SimWorld(std::uint64_t seed);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  /// The reference stays valid.
  SimNode& add_node();
  SimNode& node(std::size_t index) { return *nodes_[index]; }
  std::size_t node_count() const { return nodes_.size(); }
  Instant now() const;

  /// Options of the direction from -> to, at first those of the world; for links and dials that begin later.
  PathOptions& path(const SimNode& from, const SimNode& to);
  /// Gives the node another address, which a second node may have, too: dialled on a node that has it, it is that node's own. The options
  /// of links that are dialled there, in both directions, for those that begin later.
  PathOptions& add_address(const SimNode& node, const std::string& host);
  /// All links of the node together send, and receive, at most so much from now on.
  void limit_port(const SimNode& node, std::uint64_t bytes_per_second);

  /// Until nothing is left to happen, or a limit is met.
  RunEnd run_until_idle(RunLimits limits = {});
  /// Until `condition`, asked before the first event and after each, holds (done); otherwise as run_until_idle.
  RunEnd run_until(const std::function<bool()>& condition, RunLimits limits = {});
  /// Lets this much virtual time pass.
  void run_for(Duration duration);
  std::uint64_t event_count() const;
  /// Of everything that has happened: times, links, sizes and contents. Equal for equal runs.
  std::uint64_t trace_hash() const;

  /// The process ends: its callbacks never run again, and dials to it are refused (or unanswered, where it falls silent).
  SimFault stop(const SimNode& node, StopKind kind = StopKind::closes_links);
  /// The process runs nothing until resume(); its kernel still takes bytes and connections.
  SimFault freeze(const SimNode& node);
  SimFault resume(const SimNode& node);
  /// Packets between the two vanish, both ways, and no end is told. mend() lets TCP go on where it was.
  SimFault cut(const SimNode& one, const SimNode& other);
  SimFault mend(const SimNode& one, const SimNode& other);
  /// Cuts the node from all others, present and future; rejoin() ends it.
  SimFault isolate(const SimNode& node);
  SimFault rejoin(const SimNode& node);
  /// Nothing leaves `from` towards `to` for so long; what is in flight arrives.
  SimFault stall(const SimNode& from, const SimNode& to, Duration duration);
  /// All links between the two are reset at both ends.
  SimFault reset(const SimNode& one, const SimNode& other);

 private:
  friend class SimNode;
  friend class SimFault;
  struct Machinery;
  void step();
  void check_watches();

  std::unique_ptr<Machinery> machinery_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
};

}  // namespace ringlet
