#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "sim/sim_random.hpp"
#include "tools/discovery/datagrams.hpp"

namespace ringlet::test {

struct AirOptions {
  std::uint64_t seed = 0;
  std::uint32_t lost = 0;     // of a thousand datagrams
  std::uint32_t doubled = 0;  // of a thousand
  Range<Duration> delay{Duration::microseconds(100), Duration::milliseconds(5)};
};

class Station;

/// Carries datagrams in virtual time between stations on several networks. For one thread; the same seed replays a run.
class Air {
 public:
  explicit Air(AirOptions options) : options_(options), random_(options.seed) {}

  Instant now() const { return now_; }
  SimRandom& random() { return random_; }
  /// Adds a station, which gets an interface and an address on each of these networks.
  Station& add_station(std::vector<std::uint8_t> networks);
  /// Whether networks pass datagrams that go to all stations; those to one station always pass.
  bool multicast = true;

  /// Delivers the bytes to `to` after a delay, and may lose or double them.
  void send(const DatagramSource& from, Station& to, ConstBytes bytes);
  void send_to_all(Station& from, ConstBytes bytes);
  void send_to(Station& from, const IpAddress& to, ConstBytes bytes);
  void schedule(Duration delay, std::function<void()> task);
  void run_for(Duration time);
  /// Runs until `done`. Returns the time it took, or nothing where that is longer than `limit`.
  std::optional<Duration> run_until(const std::function<bool()>& done, Duration limit);

 private:
  void run_next();

  AirOptions options_;
  SimRandom random_;
  Instant now_{};
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t next_event_ = 0;
  std::vector<std::unique_ptr<Station>> stations_;
};

IpAddress address_on(std::uint8_t network, std::uint16_t station);

/// One machine, with its loop and its datagrams.
class Station final : public EventLoop, public Datagrams {
 public:
  Station(Air& air, std::uint16_t number, std::vector<std::uint8_t> networks)
      : air_(air), number_(number), networks_(std::move(networks)) {}

  Instant now() const override { return air_.now(); }
  void defer(Task task) override { after({}, std::move(task)); }
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId id) override { timers_.erase(id); }

  void start(DatagramUser& user) override { user_ = &user; }
  void stop() override { user_ = nullptr; }
  void send_to_all(ConstBytes bytes) override;
  void send_to_peers(ConstBytes bytes) override;
  void answer(const DatagramSource& to, ConstBytes bytes) override;
  bool is_from_peers(const DatagramSource&) const override { return !peers.empty(); }
  std::vector<NetworkInterface> interfaces() const override;

  /// Stops the station at once, without a goodbye.
  void kill() { alive_ = false; }
  void change_networks(std::vector<std::uint8_t> networks);
  const std::vector<std::uint8_t>& networks() const { return networks_; }
  std::uint16_t number() const { return number_; }
  void deliver(const DatagramSource& from, ConstBytes bytes);

  std::vector<IpAddress> peers;
  std::vector<std::string> heard;  // every datagram, in order
  std::size_t answered_bytes = 0;
  std::size_t answers = 0;

 private:
  Air& air_;
  std::uint16_t number_;
  std::vector<std::uint8_t> networks_;
  DatagramUser* user_ = nullptr;
  bool alive_ = true;
  std::map<TimerId, Task> timers_;
  TimerId last_timer_ = 0;
};

}  // namespace ringlet::test
