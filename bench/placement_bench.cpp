// Measures large sums by the ring and by hub in groups with guests, on the simulated network in virtual time. The speeds of ranks and
// links decide the result, not this machine. Each rank's links share its port. Bytes between two guests pass a native's port, in and out.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "core/engine/requests.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/relay.hpp"
#include "sim/sim_network.hpp"

using namespace ringlet;

namespace {

/// The latency of the links and the speed of the ports, of natives and of guests.
struct Speeds {
  const char* name;
  LinkCost native, guest;
};

std::uint64_t bytes_per_second(const LinkCost& cost) { return static_cast<std::uint64_t>(1e9 / cost.ns_per_byte); }

PathOptions path_of(const LinkCost& cost) {
  PathOptions path = PathOptions::calm();
  const Duration latency{static_cast<std::int64_t>(cost.latency_ns)};
  path.latency = {latency, latency};
  path.bytes_per_second = {100'000'000'000, 100'000'000'000};
  path.send_buffer_bytes = path.receive_buffer_bytes = {512 << 10, 512 << 10};
  return path;
}

class IgnoringOwner final : public SessionOwner {
 public:
  PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
  void on_session_failed(Session&, const Status&) override {}
  void on_session_ended(Session&) override {}
};

/// Worlds with a link between every two ranks. Bytes between two guests pass through a native rank.
class SimulatedGroup {
 public:
  SimulatedGroup(int natives, int guests, const Speeds& speeds, PlacementPolicy policy)
      : size_(natives + guests), natives_(natives), speeds_(speeds), sim_(std::uint64_t{1}) {
    WorldOptions options;
    options.size = size_;
    options.guests = guests;
    options.kernels = simd::find("");
    options.placement = {policy, speeds.native, speeds.guest};
    for (options.rank = 0; options.rank < size_; ++options.rank) {
      sim_.limit_port(sim_.add_node(), bytes_per_second(is_guest(options.rank) ? speeds.guest : speeds.native));
      worlds_.push_back(std::make_unique<World>(node(options.rank).loop(), options));
    }
    for (int one = 0; one < size_; ++one)
      for (int other = 0; other < one; ++other) is_guest(other) ? connect_by_relay(one, other) : connect(one, other);
  }
  ~SimulatedGroup() { worlds_.clear(); }

  /// Returns the duration of one sum in virtual milliseconds.
  double sum(std::size_t bytes) {
    values_.assign(static_cast<std::size_t>(size_), std::vector<float>(bytes / sizeof(float), 1.0F));
    int done = 0;
    const Instant start = sim_.now();
    for (std::size_t rank = 0; rank < worlds_.size(); ++rank) {
      auto task = make_all_reduce(ReduceOp::sum, values_[rank], values_[rank], 1, worlds_[rank]->group().options());
      task.value().completion = [&done](const Status& status) { done += status.ok() ? 1 : 0; };
      worlds_[rank]->group().start(0, std::move(task).value());
    }
    sim_.run_until([&] { return done == size_; }, {.events = 1'000'000'000'000});
    for (const auto& own : values_)
      if (own.front() != static_cast<float>(size_) || own.back() != own.front()) fmt::print("WRONG RESULT\n");
    return static_cast<double>((sim_.now() - start).nanoseconds) / 1e6;
  }
  std::string placement() const { return describe_placement(size_, worlds_[0]->options().topology, {}, worlds_[0]->options().placement); }

 private:
  struct Ends {
    std::unique_ptr<Link> dialled, accepted;
  };
  bool is_guest(int rank) const { return rank >= natives_; }
  SimNode& node(int rank) { return sim_.node(static_cast<std::size_t>(rank)); }

  Ends make_link(int dialler, int listener) {
    sim_.path(node(dialler), node(listener)) = sim_.path(node(listener), node(dialler)) =
        path_of(is_guest(dialler) ? speeds_.guest : speeds_.native);
    const Address address{node(listener).host(), next_port_++};
    Ends ends;
    auto opened = node(listener).network().listen(address, [&](std::unique_ptr<Link> link) { ends.accepted = std::move(link); });
    node(dialler).network().dial(address, Duration::seconds(1),
                                 [&](Result<std::unique_ptr<Link>> link) { ends.dialled = std::move(link).value(); });
    sim_.run_until([&] { return ends.dialled && ends.accepted; });
    return ends;
  }
  void connect(int one, int other) {
    Ends ends = make_link(one, other);
    adopt(one, other, std::move(ends.dialled));
    adopt(other, one, std::move(ends.accepted));
  }
  void connect_by_relay(int one, int other) {
    const int between = worlds_[0]->options().relay_of(one, other);
    Ends first = make_link(one, between), second = make_link(other, between);
    relays_.push_back(std::make_unique<Relay>(node(between).loop(), [] {}));
    relays_.back()->attach(0, std::move(first.accepted));
    relays_.back()->attach(1, std::move(second.accepted));
    adopt(one, other, std::move(first.dialled));
    adopt(other, one, std::move(second.dialled));
  }
  void adopt(int rank, int peer, std::unique_ptr<Link> link) {
    auto session = std::make_unique<Session>(std::move(link), node(rank).loop(), owner_, SessionOptions{});
    worlds_[static_cast<std::size_t>(rank)]->adopt(std::move(session), peer);
  }

  const int size_, natives_;
  const Speeds speeds_;
  SimWorld sim_;
  IgnoringOwner owner_;
  std::uint16_t next_port_ = 5000;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<std::vector<float>> values_;
};

}  // namespace

int main() {
  constexpr std::size_t kBytes = 8 << 20;
  const std::vector<Speeds> all{{"wired, level", {100e3, 8}, {100e3, 8}}, {"guests on Wi-Fi", {100e3, 8}, {2e6, 40}}};
  const std::vector<std::pair<int, int>> groups{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 2}, {4, 2}, {8, 1}};
  for (const Speeds& speeds : all) {
    fmt::print("{}: sums of {} MiB, virtual ms\n", speeds.name, kBytes >> 20);
    fmt::print("{:>8} {:>7} {:>9} {:>9}\n", "natives", "guests", "ring", "hub");
    for (const auto& [natives, guests] : groups) {
      const double ring = SimulatedGroup(natives, guests, speeds, PlacementPolicy::ring).sum(kBytes);
      const double hub = SimulatedGroup(natives, guests, speeds, PlacementPolicy::hub).sum(kBytes);
      fmt::print("{:>8} {:>7} {:>9.1f} {:>9.1f}  {}\n", natives, guests, ring, hub,
                 SimulatedGroup(natives, guests, speeds, PlacementPolicy::automatic).placement());
    }
  }
}
