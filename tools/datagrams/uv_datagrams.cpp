#include "tools/datagrams/uv_datagrams.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "tools/datagrams/datagram_socket.hpp"
#include "tools/datagrams/named_peer.hpp"
#include "transport/uv/interface_list.hpp"

namespace ringlet {

using uv::DatagramSocket;
using uv::ListedInterface;
using uv::SocketAddress;

namespace {

constexpr Duration kBetweenLooks = Duration::seconds(1);
constexpr std::size_t kMostPeers = 64;

// From the ranges that stand for a site and for a link, and that nobody has to ask for.
IpAddress group_of(IpAddress::Family family) {
  constexpr std::array<unsigned char, 4> kGroup4{239, 255, 82, 78};
  constexpr std::array<unsigned char, 16> kGroup6{0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x52, 0x4e, 0x47, 0x4c};
  return family == IpAddress::Family::v4 ? *IpAddress::from_bytes(std::as_bytes(std::span(kGroup4)))
                                         : *IpAddress::from_bytes(std::as_bytes(std::span(kGroup6)));
}

std::optional<DatagramSource> source_of(const SocketAddress& from, std::uint32_t way) {
  DatagramSource source;
  source.way = way;
  ConstBytes bytes;
  if (from.family() == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(&from.storage);
    bytes = std::as_bytes(std::span(&v4.sin_addr, 1));
    source.port = ntohs(v4.sin_port);
  } else {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(&from.storage);
    bytes = std::as_bytes(std::span(&v6.sin6_addr, 1));
    source.port = ntohs(v6.sin6_port);
    source.scope = v6.sin6_scope_id;
  }
  source.address = *IpAddress::from_bytes(bytes);
  if (!source.address.is_unicast() || source.port == 0) return std::nullopt;
  return source;
}

/// The first of that family that fits; of IPv6 the link-local one, which such a group is meant for.
std::optional<IpAddress> own_address(const ListedInterface& interface, IpAddress::Family family) {
  std::optional<IpAddress> found;
  for (const IpAddress& address : interface.addresses) {
    if (address.family() != family) continue;
    if (!found || (family == IpAddress::Family::v6 && address.is_link_local() && !found->is_link_local())) found = address;
  }
  return found;
}

}  // namespace

/// The sockets. A way is the number of the socket on which an answer leaves.
class UvDatagrams::State {
 public:
  State(uv::LoopState& loop, UvDatagramsOptions options) : loop_(loop), options_(std::move(options)) {}
  ~State() { stop(); }

  void start(DatagramUser& user);
  void stop();
  void send_to_all(ConstBytes bytes);
  void send_to_peers(ConstBytes bytes);
  void answer(const DatagramSource& to, ConstBytes bytes);
  const std::vector<ListedInterface>& interfaces() const { return interfaces_; }
  Status status() const { return ears_.empty() && doors_.empty() ? failure_ : Status{}; }
  std::uint16_t door_port() const { return doors_.empty() ? std::uint16_t{0} : sockets_.at(doors_.front())->port(); }

 private:
  /// What one interface has of one family.
  struct Mouth {
    std::uint32_t way = 0;
    SocketAddress group;
    std::uint32_t interface = 0;
    IpAddress own;
  };

  DatagramSocket::OnDatagram hearing(std::uint32_t way);
  std::uint32_t keep(DatagramSocket* socket);
  void close(std::uint32_t way);
  void open_doors();
  void open_place(const ListedInterface& interface, IpAddress::Family family);
  void open_missing();
  void close_stale();
  void look();

  uv::LoopState& loop_;
  UvDatagramsOptions options_;
  DatagramUser* user_ = nullptr;
  std::map<std::uint32_t, DatagramSocket*> sockets_;
  std::uint32_t last_way_ = 0;
  std::vector<ListedInterface> interfaces_;
  std::vector<Mouth> mouths_;
  std::map<std::uint32_t, std::uint32_t> ears_;  // of a mouth's way, the ear's
  std::vector<std::uint32_t> doors_;
  std::map<int, std::uint32_t> voices_;  // for named peers, by family
  std::vector<uv::NamedPeer*> peers_;
  Status failure_;
  TimerId timer_ = 0;
};

DatagramSocket::OnDatagram UvDatagrams::State::hearing(std::uint32_t way) {
  return [this, way](const SocketAddress& from, ConstBytes bytes) {
    const auto source = source_of(from, way);
    if (source && user_ != nullptr) user_->datagram_came(*source, bytes);
  };
}

std::uint32_t UvDatagrams::State::keep(DatagramSocket* socket) {
  sockets_.emplace(++last_way_, socket);
  return last_way_;
}

void UvDatagrams::State::close(std::uint32_t way) {
  const auto found = sockets_.find(way);
  if (found == sockets_.end()) return;
  found->second->drop();
  sockets_.erase(found);
}

void UvDatagrams::State::start(DatagramUser& user) {
  user_ = &user;
  for (const Address& peer : options_.peers)
    if (peers_.size() < kMostPeers) peers_.push_back(uv::NamedPeer::start(loop_, peer));
  open_doors();
  interfaces_ = uv::choose_interfaces(uv::list_interfaces(), options_.interfaces);
  open_missing();
  timer_ = loop_.after(kBetweenLooks, [this] { look(); });
}

void UvDatagrams::State::stop() {
  if (user_ == nullptr) return;
  user_ = nullptr;
  loop_.cancel(timer_);
  for (uv::NamedPeer* peer : peers_) peer->drop();
  for (const auto& [way, socket] : sockets_) socket->drop();
  peers_.clear();
  sockets_.clear();
  mouths_.clear();
  ears_.clear();
  doors_.clear();
  voices_.clear();
}

void UvDatagrams::State::open_doors() {
  for (const auto family : {IpAddress::Family::v4, IpAddress::Family::v6}) {
    if (auto voice = DatagramSocket::open_door(loop_, family, 0, hearing(last_way_ + 1)); voice.ok())
      voices_[family == IpAddress::Family::v4 ? AF_INET : AF_INET6] = keep(voice.value());
    if (!options_.has_door) continue;
    auto door = DatagramSocket::open_door(loop_, family, options_.port, hearing(last_way_ + 1));
    if (door.ok())
      doors_.push_back(keep(door.value()));
    else
      failure_ = door.status();
  }
}

void UvDatagrams::State::open_place(const ListedInterface& interface, IpAddress::Family family) {
  const auto own = own_address(interface, family);
  if (!own) return;
  const uv::GroupPlace place{group_of(family), options_.port, interface.index, *own};
  const auto same = [&](const Mouth& mouth) { return mouth.interface == place.interface && mouth.own == place.own; };
  auto mouth = std::find_if(mouths_.begin(), mouths_.end(), same);
  if (mouth == mouths_.end()) {
    auto opened = DatagramSocket::open_mouth(loop_, place, hearing(last_way_ + 1));
    if (!opened.ok()) {
      failure_ = opened.status();
      return;
    }
    const auto group = uv::socket_address(place.group, place.port, place.interface);
    mouth = mouths_.insert(mouths_.end(), {keep(opened.value()), group, place.interface, place.own});
  }
  if (ears_.count(mouth->way) != 0) return;
  // What the ear hears is answered by the mouth: no socket can send from a group's address.
  auto ear = DatagramSocket::open_ear(loop_, place, hearing(mouth->way));
  if (ear.ok())
    ears_[mouth->way] = keep(ear.value());
  else
    failure_ = ear.status();
}

void UvDatagrams::State::open_missing() {
  for (const ListedInterface& interface : interfaces_)
    for (const auto family : {IpAddress::Family::v4, IpAddress::Family::v6}) open_place(interface, family);
}

void UvDatagrams::State::close_stale() {
  const auto stale = [&](const Mouth& mouth) {
    const bool lives = std::any_of(interfaces_.begin(), interfaces_.end(), [&](const ListedInterface& one) {
      return one.index == mouth.interface && own_address(one, mouth.own.family()) == mouth.own;
    });
    if (lives) return false;
    close(mouth.way);
    if (const auto ear = ears_.find(mouth.way); ear != ears_.end()) {
      close(ear->second);
      ears_.erase(ear);
    }
    return true;
  };
  std::erase_if(mouths_, stale);
}

void UvDatagrams::State::look() {
  timer_ = loop_.after(kBetweenLooks, [this] { look(); });
  auto now = uv::choose_interfaces(uv::list_interfaces(), options_.interfaces);
  const bool changed = now != interfaces_;
  interfaces_ = std::move(now);
  if (changed) close_stale();
  // Also those that could not be opened the last time.
  open_missing();
  if (changed) user_->interfaces_changed();
}

void UvDatagrams::State::send_to_all(ConstBytes bytes) {
  for (const Mouth& mouth : mouths_) sockets_.at(mouth.way)->send(mouth.group, bytes);
}

void UvDatagrams::State::send_to_peers(ConstBytes bytes) {
  for (const uv::NamedPeer* peer : peers_)
    for (const SocketAddress& address : peer->addresses())
      if (const auto voice = voices_.find(address.family()); voice != voices_.end()) sockets_.at(voice->second)->send(address, bytes);
}

void UvDatagrams::State::answer(const DatagramSource& to, ConstBytes bytes) {
  if (const auto found = sockets_.find(to.way); found != sockets_.end())
    found->second->send(uv::socket_address(to.address, to.port, to.scope), bytes);
}

UvDatagrams::UvDatagrams(UvLoop& loop, UvDatagramsOptions options) : state_(std::make_unique<State>(loop.state(), std::move(options))) {}
UvDatagrams::~UvDatagrams() = default;

void UvDatagrams::start(DatagramUser& user) { state_->start(user); }
void UvDatagrams::stop() { state_->stop(); }
void UvDatagrams::send_to_all(ConstBytes bytes) { state_->send_to_all(bytes); }
void UvDatagrams::send_to_peers(ConstBytes bytes) { state_->send_to_peers(bytes); }
void UvDatagrams::answer(const DatagramSource& to, ConstBytes bytes) { state_->answer(to, bytes); }
Status UvDatagrams::status() const { return state_->status(); }
std::uint16_t UvDatagrams::door_port() const { return state_->door_port(); }

std::vector<NetworkInterface> UvDatagrams::interfaces() const {
  std::vector<NetworkInterface> all;
  for (const ListedInterface& one : state_->interfaces()) all.push_back({one.name, one.addresses});
  return all;
}

}  // namespace ringlet
