#include "tools/pairing/pairing_door.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::pairing {

namespace {

// This includes visitors that have been refused and are still receiving the refusal.
constexpr std::size_t kMaxVisitors = 40;

std::string host_of(const std::string& peer_name) {
  const auto address = parse_address(peer_name);
  return address.ok() ? address.value().host : peer_name;
}

std::vector<Address> addresses_of(const std::vector<NetworkInterface>& interfaces) {
  std::vector<Address> addresses;
  for (const NetworkInterface& interface : interfaces)
    for (const IpAddress& address : interface.addresses) {
      const bool scoped = address.family() == IpAddress::Family::v6 && address.is_link_local();
      addresses.push_back({to_string(address) + (scoped ? "%" + interface.name : ""), 0});
    }
  return addresses;
}

}  // namespace

PairingDoor::PairingDoor(UvLoop& loop, PairingDesk& desk) : loop_(loop), desk_(desk), network_(loop) {}

PairingDoor::~PairingDoor() {
  loop_.cancel(timer_);
  for (const auto& [id, visitor] : links_) loop_.cancel(visitor.timer);
}

Status PairingDoor::open(const std::vector<NetworkInterface>& interfaces) {
  Status failure(Errc::invalid_argument,
                 "there is no network interface to listen on; connect this machine to the network, or name one with "
                 "--interface");
  std::uint16_t port = 0;
  for (Address address : addresses_of(interfaces)) {
    address.port = port;
    auto listener = network_.listen(address, [this](std::unique_ptr<Link> link) { receive(std::move(link)); });
    if (!listener.ok()) {
      if (addresses_.empty()) failure = listener.status();
      continue;
    }
    port = listener.value()->address().port;
    addresses_.push_back({address.host, port});
    listeners_.push_back(std::move(listener).value());
  }
  if (addresses_.empty()) return failure;
  pass_on();
  return {};
}

void PairingDoor::receive(std::unique_ptr<Link> link) {
  if (links_.size() >= kMaxVisitors) return;
  const auto id = desk_.admit(host_of(link->peer_name()), loop_.now());
  if (id) {
    const auto on_bytes = [this, id = *id](ConstBytes bytes) {
      desk_.receive(id, bytes, loop_.now());
      pass_on();
    };
    links_[*id].link = std::make_unique<ByteLink>(std::move(link), on_bytes, [this, id = *id] { on_ended(id); });
  }
  pass_on();
}

void PairingDoor::on_ended(PairingDesk::Id id) {
  desk_.leave(id, loop_.now());
  remove(id);
  pass_on();
}

void PairingDoor::remove(PairingDesk::Id id) {
  const auto node = links_.extract(id);
  if (!node.empty()) loop_.cancel(node.mapped().timer);
}

void PairingDoor::pass_on() {
  for (auto& [id, visitor] : links_) {
    if (visitor.timer != 0) continue;
    visitor.link->send(desk_.take_outgoing(id));
    if (desk_.has(id)) continue;
    visitor.link->finish();
    visitor.timer = loop_.after(kFarewell, [this, id = id] { remove(id); });
  }
  loop_.cancel(std::exchange(timer_, 0));
  const auto deadline = desk_.next_deadline();
  if (!deadline) return;
  timer_ = loop_.after(std::max(*deadline - loop_.now(), Duration{}), [this] {
    timer_ = 0;
    desk_.advance(loop_.now());
    pass_on();
  });
}

}  // namespace ringlet::pairing
