#include "tools/discovery/discovery.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::discovery {
namespace {

constexpr std::size_t kMaxRememberedAskers = 64;
// A machine whose last query is older gets no goodbye of its own. It receives this machine's beacons, or it does not know of this machine.
constexpr Duration kAskerMemory = Duration::seconds(5);
// A forged answer cannot make this machine send more than this, nor to more addresses in that time.
constexpr std::size_t kMaxIntroduced = 32;
constexpr int kQueriesOfIntroduced = 2;
constexpr Duration kIntroductionMemory = Duration::seconds(3);
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
  ask_introduced();
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
  if (datagrams_.is_from_peers(from)) follow(beacon->known, from, bytes.size());
}

/// Asks the machines of which a named peer tells, unless they have been heard of.
void Discovery::follow(const std::vector<IpAddress>& known, const DatagramSource& from, std::size_t bytes) {
  const Instant now = loop_.now();
  std::erase_if(introduced_, [&](const Introduced& one) { return now - one.first >= kIntroductionMemory; });
  for (const IpAddress& address : known) {
    const bool asked = std::any_of(introduced_.begin(), introduced_.end(), [&](const auto& one) { return one.source.address == address; });
    if (asked || introduced_.size() == kMaxIntroduced || address.family() != from.address.family() || directory_.hears(address)) continue;
    introduced_.push_back({{address, from.port, 0, from.way}, bytes, kQueriesOfIntroduced, now});
  }
  ask_introduced();
}

std::vector<IpAddress> Discovery::unanswered() const {
  std::vector<IpAddress> all;
  for (const Introduced& one : introduced_)
    if (one.queries_left == 0 && !directory_.hears(one.source.address)) all.push_back(one.source.address);
  return all;
}

void Discovery::ask_introduced() {
  for (Introduced& one : introduced_) {
    if (one.queries_left == 0 || directory_.hears(one.source.address)) continue;
    --one.queries_left;
    datagrams_.answer(one.source, bytes_of(encode_padded(next_beacon(Beacon::Kind::query), one.bytes)));
  }
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
  Beacon own = presence();
  own.known = known_to(from, query.sequence);
  std::string beacon = encode_beacon(own);
  while (beacon.size() > std::min(query_bytes, kMaxBeaconBytes) && !own.known.empty()) {
    own.known.pop_back();
    beacon = encode_beacon(own);
  }
  if (beacon.size() > query_bytes) return;
  remember_asker(from);
  datagrams_.answer(from, bytes_of(beacon));
}

/// Where other machines are heard, as far as one datagram has room: at each query others of them.
std::vector<IpAddress> Discovery::known_to(const DatagramSource& asker, std::uint64_t first) const {
  std::vector<IpAddress> all;
  for (const auto& [instance, machine] : directory_.machines()) {
    const IpAddress& address = best_source(machine).address;
    const bool useful = address.family() == asker.address.family() && !address.is_loopback() && !address.is_link_local();
    if (useful && address != asker.address) all.push_back(address);
  }
  if (all.size() <= kMaxKnown) return all;
  std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first % all.size()), all.end());
  all.resize(kMaxKnown);
  return all;
}

void Discovery::remember_asker(const DatagramSource& from) {
  const auto same = [&](const Asker& asker) { return asker.source == from; };
  if (const auto found = std::find_if(askers_.begin(), askers_.end(), same); found != askers_.end()) askers_.erase(found);
  if (askers_.size() == kMaxRememberedAskers) askers_.erase(askers_.begin());
  askers_.push_back({from, loop_.now()});
}

}  // namespace ringlet::discovery
