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

/// One simulated process: a loop and a network, like those of a native program. It has a machine of its own unless it was added beside
/// another node. Its world owns it.
class SimNode {
 public:
  SimNode(SimWorld& world, std::uint32_t index, std::string host);
  ~SimNode();
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  EventLoop& loop() { return *loop_; }
  Network& network() { return *network_; }
  /// Opens another network of this machine, for a user that wants to destroy it.
  std::unique_ptr<Network> open_network();
  /// Returns the node's address: "10.0.0.1" for the first node.
  const std::string& host() const { return host_; }
  std::uint32_t index() const { return index_; }

 private:
  SimWorld& world_;
  std::uint32_t index_;
  std::string host_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Network> network_;
};

/// A fault that has still to be timed, for example world.stop(node).at(instant). Exactly one of its functions must be called. The fault
/// happens between two callbacks, never inside one.
class [[nodiscard]] SimFault {
 public:
  SimFault(SimWorld& world, Task happen) : world_(world), happen_(std::move(happen)) {}
  /// The fault happens as soon as the world runs.
  void now();
  void at(Instant instant);
  void in(Duration delay);
  /// The fault happens after the first event after which `condition` holds.
  void when(std::function<bool()> condition);

 private:
  SimWorld& world_;
  Task happen_;
};

/// How a stopped node ends: the process ends and its kernel closes the links in order or resets them, or the power fails and nothing is
/// sent.
enum class StopKind : std::uint8_t { closes_links, resets_links, falls_silent };

/// Nodes on a simulated TCP network with one virtual clock. Single-threaded; the same seed and the same calls give the same run. Links,
/// listeners and everything else that came from a node must be destroyed before the world. A user that breaks a port's contract stops the
/// program.
class SimWorld {
 public:
  explicit SimWorld(SimOptions options);
  explicit SimWorld(std::uint64_t seed);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  /// The reference stays valid as long as the world exists.
  SimNode& add_node();
  /// Adds a node to the machine of another one. Both have one address, with ports of their own, and share the limit of limit_port(), which
  /// does not hold for links between them.
  SimNode& add_node_beside(const SimNode& other);
  SimNode& node(std::size_t index) { return *nodes_[index]; }
  std::size_t node_count() const { return nodes_.size(); }
  Instant now() const;

  /// Returns the options of the direction from -> to, which begin as those of the world. Changes apply to links and dials that begin later.
  PathOptions& path(const SimNode& from, const SimNode& to);
  /// Gives the node another address, which a second node may have, too: a node that has the address and dials it reaches itself. Returns
  /// the options, for both directions, of links that are dialled to this address. Changes apply to links that begin later.
  PathOptions& add_address(const SimNode& node, const std::string& host);
  /// Limits what all links of the node together may send, and what they may receive, from now on.
  void limit_port(const SimNode& node, std::uint64_t bytes_per_second);

  /// Runs until there are no more events, or until a limit is reached.
  RunEnd run_until_idle(RunLimits limits = {});
  /// Runs until `condition` holds (done), or otherwise ends like run_until_idle(). The condition is checked before the first event and
  /// after each one.
  RunEnd run_until(const std::function<bool()>& condition, RunLimits limits = {});
  /// Lets this much virtual time pass.
  void run_for(Duration duration);
  std::uint64_t event_count() const;
  /// A hash of everything that has happened: times, links, sizes and contents. It is equal for equal runs.
  std::uint64_t trace_hash() const;

  /// The process ends: its callbacks never run again, and dials to it are refused, or stay unanswered with falls_silent.
  SimFault stop(const SimNode& node, StopKind kind = StopKind::closes_links);
  /// The process runs nothing until resume(); its kernel still accepts bytes and connections.
  SimFault freeze(const SimNode& node);
  SimFault resume(const SimNode& node);
  /// Packets between the two nodes vanish in both directions, and neither end is told. After mend() TCP continues where it was.
  SimFault cut(const SimNode& one, const SimNode& other);
  SimFault mend(const SimNode& one, const SimNode& other);
  /// Cuts the node off from all other nodes, present and future; rejoin() ends this.
  SimFault isolate(const SimNode& node);
  SimFault rejoin(const SimNode& node);
  /// Nothing leaves `from` towards `to` for this time; bytes in flight still arrive.
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
