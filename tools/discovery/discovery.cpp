#include "tools/discovery/discovery.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::discovery {
namespace {

constexpr std::size_t kMaxRememberedAskers = 64;
// A machine whose last query is older gets no goodbye of its own. It receives this machine's beacons, or it does not know of this machine.
constexpr Duration kAskerMemory = Duration::seconds(5);
// The goodbye is repeated, since a datagram may be lost.
constexpr int kGoodbyes = 2;

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

Discovery::Discovery(EventLoop& loop, Datagrams& datagrams, DiscoveryOptions options, OnChange on_change)
    : loop_(loop),
      datagrams_(datagrams),
      options_(std::move(options)),
      random_(options_.seed),
      directory_(std::move(on_change), options_.limits) {
  renew_instance();
}

Discovery::~Discovery() {
  if (!running_) return;
  datagrams_.stop();
  loop_.cancel(timer_);
}

void Discovery::renew_instance() {
  do instance_ = random_();
  while (instance_ == 0);
  sequence_ = 0;
}

void Discovery::start() {
  running_ = true;
  datagrams_.start(*this);
  schedule_.begin(loop_.now());
  set_timer();
}

void Discovery::announce(Profile profile) {
  options_.profile = std::move(profile);
  schedule_.begin(loop_.now());
  set_timer();
}

void Discovery::interfaces_changed() {
  schedule_.begin(loop_.now());
  set_timer();
}

void Discovery::leave() {
  if (!std::exchange(running_, false)) return;
  loop_.cancel(timer_);
  if (options_.profile) {
    const std::string goodbye = encode_beacon(next_beacon(Beacon::Kind::goodbye));
    for (int i = 0; i < kGoodbyes; ++i) {
      datagrams_.send_to_all(bytes_of(goodbye));
      datagrams_.send_to_peers(bytes_of(goodbye));
      for (const Asker& asker : askers_)
        if (loop_.now() - asker.last < kAskerMemory) datagrams_.answer(asker.source, bytes_of(goodbye));
    }
  }
  datagrams_.stop();
}

Beacon Discovery::next_beacon(Beacon::Kind kind) { return {kind, instance_, ++sequence_, {}}; }

Beacon Discovery::presence() {
  Beacon beacon = next_beacon(Beacon::Kind::presence);
  beacon.profile = *options_.profile;
  if (options_.devices) beacon.profile.devices = options_.devices();
  beacon.profile.interfaces = datagrams_.interfaces();
  return beacon;
}

void Discovery::set_timer() {
  if (!running_) return;
  loop_.cancel(timer_);
  Instant next = schedule_.next();
  if (const auto deadline = directory_.next_deadline()) next = std::min(next, *deadline);
  timer_ = loop_.after(std::max(next - loop_.now(), Duration{}), [this] { turn(); });
}

void Discovery::turn() {
  const Instant now = loop_.now();
  if (schedule_.next() <= now) send_beacons();
  ask_silent();
  directory_.expire(now);
  set_timer();
}

void Discovery::send_beacons() {
  if (options_.profile) {
    const std::string beacon = encode_beacon(presence());
    datagrams_.send_to_all(bytes_of(beacon));
    datagrams_.send_to_peers(bytes_of(beacon));
  }
  const std::string query = encode_padded(next_beacon(Beacon::Kind::query));
  if (schedule_.asks()) datagrams_.send_to_all(bytes_of(query));
  datagrams_.send_to_peers(bytes_of(query));
  schedule_.sent(loop_.now(), random_);
}

void Discovery::ask_silent() {
  for (const BeaconQuery& question : directory_.ask_silent(loop_.now()))
    datagrams_.answer(question.to, bytes_of(encode_padded(next_beacon(Beacon::Kind::query), question.bytes)));
}

void Discovery::datagram_came(const DatagramSource& from, ConstBytes bytes) {
  const auto beacon = decode_beacon(bytes);
  if (!beacon) return;
  if (beacon->instance == instance_) return hear_itself(*beacon);
  if (beacon->kind == Beacon::Kind::query) return answer(*beacon, from, bytes.size());
  if (directory_.take(*beacon, from, loop_.now())) set_timer();
}

// A forged beacon with this instance's number and a higher sequence number would make others ignore the real ones.
void Discovery::hear_itself(const Beacon& beacon) {
  if (beacon.sequence > sequence_)
    renew_instance();
  else
    heard_itself_ = true;
}

void Discovery::answer(const Beacon& query, const DatagramSource& from, std::size_t query_bytes) {
  if (!options_.profile || !answers_.allow(query.instance, query.sequence, from.address, loop_.now())) return;
  const std::string beacon = encode_beacon(presence());
  if (beacon.size() > query_bytes) return;
  remember_asker(from);
  datagrams_.answer(from, bytes_of(beacon));
}

void Discovery::remember_asker(const DatagramSource& from) {
  const auto same = [&](const Asker& asker) { return asker.source == from; };
  if (const auto found = std::find_if(askers_.begin(), askers_.end(), same); found != askers_.end()) askers_.erase(found);
  if (askers_.size() == kMaxRememberedAskers) askers_.erase(askers_.begin());
  askers_.push_back({from, loop_.now()});
}

}  // namespace ringlet::discovery
