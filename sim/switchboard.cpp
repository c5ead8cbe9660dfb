#include "sim/switchboard.hpp"

#include <algorithm>

namespace ringlet::sim {

namespace {

constexpr Duration kDialRetry = Duration::milliseconds(500);

std::string text_of(const Address& address) { return address.host + ":" + std::to_string(address.port); }
bool is_own_loopback(const std::string& host) { return host == "localhost" || host == "127.0.0.1"; }

/// Removes the entries that match. They are destroyed after they have left the map, because their callbacks may own objects that erase from
/// it.
template <class Map, class Predicate>
std::vector<typename Map::node_type> extract_if(Map& map, Predicate predicate) {
  std::vector<typename Map::node_type> taken;
  for (auto entry = map.begin(); entry != map.end();) {
    const auto current = entry++;
    if (predicate(current->second)) taken.push_back(map.extract(current));
  }
  return taken;
}

class SimListener final : public Listener {
 public:
  SimListener(Switchboard& board, std::uint32_t id, Address address) : board_(board), id_(id), address_(std::move(address)) {}
  SimListener(const SimListener&) = delete;
  SimListener& operator=(const SimListener&) = delete;
  ~SimListener() override { board_.close_listener(id_); }
  Address address() const override { return address_; }

 private:
  Switchboard& board_;
  std::uint32_t id_;
  Address address_;
};

}  // namespace

void Switchboard::add_node() {
  const std::size_t number = sites_.size();
  Site site;
  site.host = "10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1);
  site.machine = static_cast<std::uint32_t>(number);
  sites_.push_back(std::move(site));
}

void Switchboard::add_node_beside(std::uint32_t node) {
  Site site;
  site.host = sites_[node].host;
  site.machine = sites_[node].machine;
  wires_.ports().set_machine(static_cast<std::uint32_t>(sites_.size()), site.machine);
  sites_.push_back(std::move(site));
}

PathOptions& Switchboard::path(std::uint32_t from, std::uint32_t to) { return paths_.try_emplace({from, to}, defaults_).first->second; }

PathOptions& Switchboard::add_address(std::uint32_t node, const std::string& host) {
  sites_[node].other_hosts.insert(host);
  return paths_to_host_.try_emplace(host, defaults_).first->second;
}

const PathOptions& Switchboard::path_to(std::uint32_t from, std::uint32_t to, const std::string& host) {
  const auto own = paths_to_host_.find(host);
  return own == paths_to_host_.end() ? path(from, to) : own->second;
}

Result<std::unique_ptr<Listener>> Switchboard::listen(std::uint32_t node, const Address& address, Acceptor on_accept) {
  const std::string& own = sites_[node].host;
  Address real = address;
  if (real.host == "localhost") real.host = "127.0.0.1";
  if (real.host != "0.0.0.0" && real.host != "127.0.0.1" && real.host != own && !sites_[node].other_hosts.contains(real.host)) {
    return Status(Errc::invalid_argument, "cannot listen on " + text_of(address) + ": this machine is " + own);
  }
  if (real.port == 0) real.port = free_port(node);
  for (const auto& [id, open] : listeners_) {
    const bool overlaps = open.address.host == real.host || open.address.host == "0.0.0.0" || real.host == "0.0.0.0";
    if (share_machine(open.node, node) && open.address.port == real.port && overlaps) {
      return Status(Errc::invalid_argument, "cannot listen on " + text_of(address) + ": the port is in use; choose another, or 0");
    }
  }
  const std::uint32_t id = next_id_++;
  listeners_[id] = {node, real, std::make_shared<Acceptor>(std::move(on_accept))};
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(*this, id, real));
}

void Switchboard::dial(const Network& owner, std::uint32_t node, const Address& address, Duration timeout, Dialled on_dialled) {
  const std::uint32_t id = next_id_++;
  Dial& dial = dials_[id];
  dial.owner = &owner;
  dial.node = node;
  dial.target = resolve(node, address.host);
  dial.address = address;
  dial.timeout = timeout;
  dial.on_dialled = std::move(on_dialled);
  clock_.schedule(clock_.now() + std::max(timeout, Duration{}), EventKind::dial_timeout, id);
  if (dial.target == kNoNode) {
    dial.failure = "there is no such host";
    return clock_.schedule(clock_.now(), EventKind::dial_done, id);
  }
  const PathOptions& options = path_to(node, dial.target, address.host);
  SimRandom& random = clock_.random();
  if (random.chance(options.dial_hangs_per_mille)) dial.fate = Dial::Fate::hangs;
  if (random.chance(options.dial_refused_per_mille)) dial.fate = Dial::Fate::refused;
  clock_.schedule(clock_.now() + random.in(options.latency) + random.in(options.dial_delay), EventKind::dial_arrive, id);
}

void Switchboard::drop_dials(const Network& owner) {
  for (const auto& entry : extract_if(dials_, [&owner](const Dial& dial) { return dial.owner == &owner; })) {
    if (entry.mapped().connection != nullptr) wires_.close(*entry.mapped().connection, 0, Wires::Farewell::orderly);
  }
}

void Switchboard::run(const Event& event) {
  if (event.kind == EventKind::accept) return accept(event);
  if (event.kind == EventKind::dial_timeout) return time_out(event);
  Dial& dial = dials_.at(event.index);
  // A handshake packet that was lost is sent again until the dial's timeout.
  if (dial.target != kNoNode && cut(dial.node, dial.target)) {
    return clock_.schedule(clock_.now() + kDialRetry, event.kind, event.index);
  }
  if (event.kind == EventKind::dial_arrive) return reach_listener(event.index, dial);
  end_dial(event);
}

/// The kernel answers a dial, so a frozen process still gets connections.
void Switchboard::reach_listener(std::uint32_t id, Dial& dial) {
  if (dial.fate == Dial::Fate::hangs) return;
  dial.target = listening_node(dial.target, dial.address);
  const auto open = find_listener(dial.target, dial.address.host, dial.address.port);
  const std::string& host = dial.address.host;
  const PathOptions& back = path_to(dial.target, dial.node, host);
  if (dial.fate == Dial::Fate::refused || open == listeners_.end()) {
    dial.failure = "connection refused";
  } else {
    Connection& connection =
        wires_.connect(dial.node, free_port(dial.node), path_to(dial.node, dial.target, host), dial.target, dial.address.port, back, false);
    if (sites_[dial.target].other_hosts.contains(host)) connection.ends[1].host = host;
    dial.connection = &connection;
    connection.listener = open->first;
    clock_.schedule(clock_.now() + clock_.loop_delay(), EventKind::accept, connection.index, connection.generation, 1);
  }
  clock_.schedule(clock_.now() + clock_.random().in(back.latency), EventKind::dial_done, id);
}

void Switchboard::accept(const Event& event) {
  Connection* connection = wires_.find(event.index, event.generation);
  if (connection == nullptr || connection->ends[1].closed || !clock_.admits(connection->ends[1].node, event)) return;
  const auto open = listeners_.find(connection->listener);
  if (open == listeners_.end()) return wires_.close(*connection, 1, Wires::Farewell::reset);
  const std::shared_ptr<Acceptor> on_accept = open->second.on_accept;
  clock_.trace(connection->serial);
  (*on_accept)(wires_.make_link(*connection, 1, name(connection->ends[1]), name(connection->ends[0])));
}

void Switchboard::end_dial(const Event& event) {
  if (!clock_.admits(dials_.at(event.index).node, event)) return;
  const Dial dial = take_dial(event.index);
  clock_.trace(event.index);
  if (dial.connection == nullptr) {
    return dial.on_dialled(Status(Errc::peer_lost, "cannot reach " + text_of(dial.address) + ": " + dial.failure));
  }
  dial.on_dialled(wires_.make_link(*dial.connection, 0, name(dial.connection->ends[0]), name(dial.connection->ends[1])));
}

void Switchboard::time_out(const Event& event) {
  if (!clock_.admits(dials_.at(event.index).node, event)) return;
  const Dial dial = take_dial(event.index);
  clock_.trace(event.index);
  if (dial.connection != nullptr) wires_.close(*dial.connection, 0, Wires::Farewell::reset);
  dial.on_dialled(Status(Errc::timed_out, "cannot reach " + text_of(dial.address) + ": no answer within " +
                                              std::to_string(dial.timeout.whole_milliseconds()) + " ms"));
}

Switchboard::Dial Switchboard::take_dial(std::uint32_t id) { return std::move(dials_.extract(id).mapped()); }

void Switchboard::drop_callbacks() {
  while (!dials_.empty()) const auto dropped = dials_.extract(dials_.begin());
  while (!listeners_.empty()) const auto dropped = listeners_.extract(listeners_.begin());
}

void Switchboard::set_cut(std::uint32_t one, std::uint32_t other, bool cut) {
  if (cut) {
    cuts_.insert(std::pair(std::minmax(one, other)));
  } else {
    cuts_.erase(std::pair(std::minmax(one, other)));
  }
  refresh_cuts();
}

void Switchboard::isolate(std::uint32_t node, bool isolated) {
  sites_[node].isolated = isolated;
  refresh_cuts();
}

void Switchboard::abandon(std::uint32_t node, Wires::Farewell farewell) {
  const auto of_node = [node](const auto& entry) { return entry.node == node; };
  const auto ports = extract_if(listeners_, of_node);
  const auto dials = extract_if(dials_, of_node);
  wires_.for_each([&](Connection& connection) {
    for (std::size_t side = 0; side < 2; ++side) {
      if (connection.ends[side].node == node) wires_.close(connection, side, farewell);
    }
  });
}

bool Switchboard::cut(std::uint32_t one, std::uint32_t other) const {
  return one != other && (sites_[one].isolated || sites_[other].isolated || cuts_.contains(std::pair(std::minmax(one, other))));
}

void Switchboard::refresh_cuts() {
  wires_.for_each([this](Connection& connection) { wires_.set_cut(connection, cut(connection.ends[0].node, connection.ends[1].node)); });
}

std::uint32_t Switchboard::resolve(std::uint32_t from, const std::string& host) const {
  if (is_own_loopback(host) || sites_[from].other_hosts.contains(host)) return from;
  const auto site = std::find_if(sites_.begin(), sites_.end(),
                                 [&host](const Site& candidate) { return candidate.host == host || candidate.other_hosts.contains(host); });
  return site == sites_.end() ? kNoNode : static_cast<std::uint32_t>(site - sites_.begin());
}

std::uint32_t Switchboard::listening_node(std::uint32_t target, const Address& address) {
  for (std::uint32_t node = 0; node < sites_.size(); ++node)
    if (share_machine(node, target) && find_listener(node, address.host, address.port) != listeners_.end()) return node;
  return target;
}

std::uint16_t Switchboard::free_port(std::uint32_t node) {
  std::uint16_t& next = sites_[sites_[node].machine].next_port;
  next = next == UINT16_MAX ? 40000 : static_cast<std::uint16_t>(next + 1);
  return next;
}

std::map<std::uint32_t, Switchboard::OpenPort>::iterator Switchboard::find_listener(std::uint32_t node, const std::string& host,
                                                                                    std::uint16_t port) {
  const std::string dialled = is_own_loopback(host) ? "127.0.0.1" : sites_[node].other_hosts.contains(host) ? host : sites_[node].host;
  return std::find_if(listeners_.begin(), listeners_.end(), [&](const auto& entry) {
    const OpenPort& open = entry.second;
    return open.node == node && open.address.port == port && (open.address.host == "0.0.0.0" || open.address.host == dialled);
  });
}

}  // namespace ringlet::sim
