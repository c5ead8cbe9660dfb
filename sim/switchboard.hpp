#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/network.hpp"
#include "sim/wires.hpp"

namespace ringlet::sim {

/// The listeners and dials of all nodes. Each node has an address 10.0.x.y, given in order.
class Switchboard {
 public:
  Switchboard(Clockwork& clock, Wires& wires, PathOptions defaults) : clock_(clock), wires_(wires), defaults_(defaults) {}

  void add_node();
  /// Adds a node to the machine of another one: it has its address, and none of its ports.
  void add_node_beside(std::uint32_t node);
  const std::string& host(std::uint32_t node) const { return sites_[node].host; }
  PathOptions& path(std::uint32_t from, std::uint32_t to);
  /// Adds another address to a node, and returns the options of links that are dialled to it, for both directions.
  PathOptions& add_address(std::uint32_t node, const std::string& host);

  Result<std::unique_ptr<Listener>> listen(std::uint32_t node, const Address& address, Acceptor on_accept);
  void close_listener(std::uint32_t id) { listeners_.erase(id); }
  /// `owner` is the network that dials.
  void dial(const Network& owner, std::uint32_t node, const Address& address, Duration timeout, Dialled on_dialled);
  void drop_dials(const Network& owner);
  bool dial_is_over(const Event& event) const { return !dials_.contains(event.index); }
  void run(const Event& event);
  /// Destroys all callbacks without running them.
  void drop_callbacks();

  // Faults.
  void set_cut(std::uint32_t one, std::uint32_t other, bool cut);
  void isolate(std::uint32_t node, bool isolated);
  /// Closes the node's listeners, dials and links like a kernel does when the process ends.
  void abandon(std::uint32_t node, Wires::Farewell farewell);

 private:
  struct Site {
    std::string host;
    std::uint32_t machine = kNoNode;  // the first node of it
    std::set<std::string> other_hosts{};
    std::uint16_t next_port = 40000;
    bool isolated = false;
  };
  struct OpenPort {
    std::uint32_t node = kNoNode;
    Address address;
    std::shared_ptr<Acceptor> on_accept;  // shared with a running call, because the acceptor may destroy its listener
  };
  struct Dial {
    const Network* owner = nullptr;
    std::uint32_t node = kNoNode;
    std::uint32_t target = kNoNode;
    Address address;
    Duration timeout;
    Dialled on_dialled;
    enum class Fate : std::uint8_t { works, refused, hangs } fate = Fate::works;
    Connection* connection = nullptr;
    std::string failure;
  };
  bool cut(std::uint32_t one, std::uint32_t other) const;
  void refresh_cuts();
  std::uint32_t resolve(std::uint32_t from, const std::string& host) const;
  /// The node on the machine of `target` that listens at the address, or `target` itself.
  std::uint32_t listening_node(std::uint32_t target, const Address& address);
  bool share_machine(std::uint32_t one, std::uint32_t other) const { return sites_[one].machine == sites_[other].machine; }
  std::uint16_t free_port(std::uint32_t node);
  std::map<std::uint32_t, OpenPort>::iterator find_listener(std::uint32_t node, const std::string& host, std::uint16_t port);
  void reach_listener(std::uint32_t id, Dial& dial);
  void accept(const Event& event);
  void end_dial(const Event& event);
  void time_out(const Event& event);
  Dial take_dial(std::uint32_t id);
  const PathOptions& path_to(std::uint32_t from, std::uint32_t to, const std::string& host);
  std::string name(const End& end) const { return (end.host.empty() ? sites_[end.node].host : end.host) + ":" + std::to_string(end.port); }

  Clockwork& clock_;
  Wires& wires_;
  PathOptions defaults_;
  std::vector<Site> sites_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, PathOptions> paths_;
  std::map<std::string, PathOptions> paths_to_host_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cuts_;
  std::map<std::uint32_t, OpenPort> listeners_;
  std::map<std::uint32_t, Dial> dials_;
  std::uint32_t next_id_ = 1;
};

}  // namespace ringlet::sim
