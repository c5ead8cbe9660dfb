#include "tests/core/sim_datagrams.hpp"

#include <algorithm>
#include <array>

namespace ringlet::test {

IpAddress address_on(std::uint8_t network, std::uint16_t station) {
  const std::array bytes{std::byte{10}, std::byte{network}, static_cast<std::byte>(station >> 8), static_cast<std::byte>(station)};
  return *IpAddress::from_bytes(bytes);
}

Station& Air::add_station(std::vector<std::uint8_t> networks) {
  stations_.push_back(std::make_unique<Station>(*this, static_cast<std::uint16_t>(stations_.size() + 1), std::move(networks)));
  return *stations_.back();
}

void Air::schedule(Duration delay, std::function<void()> task) { events_.emplace(std::pair(now_ + delay, next_event_++), std::move(task)); }

void Air::send(const DatagramSource& from, Station& to, ConstBytes bytes) {
  if (random_.chance(options_.lost)) return;
  const int copies = random_.chance(options_.doubled) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy)
    schedule(random_.in(options_.delay),
             [from, &to, kept = std::vector<std::byte>(bytes.begin(), bytes.end())] { to.deliver(from, kept); });
}

void Air::send_to_all(Station& from, ConstBytes bytes) {
  if (!multicast) return;
  for (const std::uint8_t network : from.networks())
    for (const auto& station : stations_)
      if (const auto& others = station->networks(); std::find(others.begin(), others.end(), network) != others.end())
        send({address_on(network, from.number()), 1, 0, 0}, *station, bytes);
}

void Air::send_to(Station& from, const IpAddress& to, ConstBytes bytes) {
  for (const auto& station : stations_)
    for (const std::uint8_t network : station->networks()) {
      const auto& own = from.networks();
      const bool reachable = std::find(own.begin(), own.end(), network) != own.end();
      if (reachable && address_on(network, station->number()) == to) send({address_on(network, from.number()), 1, 0, 0}, *station, bytes);
    }
}

void Air::run_next() {
  const auto node = events_.extract(events_.begin());
  now_ = node.key().first;
  node.mapped()();
}

void Air::run_for(Duration time) {
  const Instant end = now_ + time;
  while (!events_.empty() && events_.begin()->first.first <= end) run_next();
  now_ = end;
}

std::optional<Duration> Air::run_until(const std::function<bool()>& done, Duration limit) {
  const Instant start = now_;
  while (!done()) {
    if (events_.empty() || events_.begin()->first.first > start + limit) return std::nullopt;
    run_next();
  }
  return now_ - start;
}

TimerId Station::after(Duration delay, Task task) {
  const TimerId id = ++last_timer_;
  timers_.emplace(id, std::move(task));
  air_.schedule(delay, [this, id] {
    auto node = timers_.extract(id);
    if (!node.empty() && alive_) node.mapped()();
  });
  return id;
}

void Station::send_to_all(ConstBytes bytes) {
  if (alive_) air_.send_to_all(*this, bytes);
}

void Station::send_to_peers(ConstBytes bytes) {
  for (const IpAddress& peer : peers)
    if (alive_) air_.send_to(*this, peer, bytes);
}

void Station::answer(const DatagramSource& to, ConstBytes bytes) {
  answered_bytes += bytes.size();
  ++answers;
  if (alive_) air_.send_to(*this, to.address, bytes);
}

std::vector<NetworkInterface> Station::interfaces() const {
  std::vector<NetworkInterface> all;
  for (const std::uint8_t network : networks_) all.push_back({"eth" + std::to_string(network), {address_on(network, number_)}});
  return all;
}

void Station::change_networks(std::vector<std::uint8_t> networks) {
  networks_ = std::move(networks);
  if (user_ != nullptr) user_->interfaces_changed();
}

void Station::deliver(const DatagramSource& from, ConstBytes bytes) {
  if (!alive_ || user_ == nullptr) return;
  heard.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  user_->datagram_came(from, bytes);
}

}  // namespace ringlet::test
