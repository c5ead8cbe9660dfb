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

constexpr Duration kBetweenListings = Duration::seconds(1);
constexpr std::size_t kMaxNamedPeers = 66;  // 64 of the command line, and this machine by both families

// The groups are in the ranges for a site (IPv4) and a link (IPv6), which need no registration.
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

/// Returns the interface's first address of that family. For IPv6 a link-local one is preferred, since the group has that scope.
std::optional<IpAddress> own_address(const ListedInterface& interface, IpAddress::Family family) {
  std::optional<IpAddress> found;
  for (const IpAddress& address : interface.addresses) {
    if (address.family() != family) continue;
    if (!found || (family == IpAddress::Family::v6 && address.is_link_local() && !found->is_link_local())) found = address;
  }
  return found;
}

}  // namespace

/// The sockets by number. A datagram's `way` is the number of the socket that sends its answer.
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
  Status status() const { return group_receivers_.empty() && shared_port_sockets_.empty() ? failure_ : Status{}; }
  bool is_from_peers(const DatagramSource& from) const {
    return std::any_of(peer_sockets_.begin(), peer_sockets_.end(), [&](const auto& socket) { return socket.second == from.way; });
  }
  std::string describe_unknown() const {
    std::string text;
    for (const uv::NamedPeer* peer : peers_)
      if (peer->is_unknown()) text += "; there is no host " + peer->name();
    return text;
  }
  std::uint16_t shared_port() const {
    return shared_port_sockets_.empty() ? std::uint16_t{0} : sockets_.at(shared_port_sockets_.front())->port();
  }

 private:
  /// The socket that sends to the group on one interface and with one family.
  struct GroupSender {
    std::uint32_t way = 0;
    SocketAddress group;
    std::uint32_t interface = 0;
    IpAddress own;
  };

  DatagramSocket::OnDatagram on_datagram_to(std::uint32_t way);
  std::uint32_t keep(DatagramSocket* socket);
  void close(std::uint32_t way);
  void open_unicast_sockets();
  void open_place(const ListedInterface& interface, IpAddress::Family family);
  void open_missing();
  void close_stale();
  void refresh();

  uv::LoopState& loop_;
  UvDatagramsOptions options_;
  DatagramUser* user_ = nullptr;
  std::map<std::uint32_t, DatagramSocket*> sockets_;
  std::uint32_t last_way_ = 0;
  std::vector<ListedInterface> interfaces_;
  std::vector<GroupSender> group_senders_;
  std::map<std::uint32_t, std::uint32_t> group_receivers_;  // by the sender's way
  std::vector<std::uint32_t> shared_port_sockets_;
  std::map<int, std::uint32_t> peer_sockets_;  // for named peers, by family
  std::vector<uv::NamedPeer*> peers_;
  Status failure_;
  TimerId timer_ = 0;
};

DatagramSocket::OnDatagram UvDatagrams::State::on_datagram_to(std::uint32_t way) {
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
    if (peers_.size() < kMaxNamedPeers) peers_.push_back(uv::NamedPeer::start(loop_, peer));
  open_unicast_sockets();
  interfaces_ = uv::choose_interfaces(uv::list_interfaces(), options_.interfaces);
  open_missing();
  timer_ = loop_.after(kBetweenListings, [this] { refresh(); });
}

void UvDatagrams::State::stop() {
  if (user_ == nullptr) return;
  user_ = nullptr;
  loop_.cancel(timer_);
  for (uv::NamedPeer* peer : peers_) peer->drop();
  for (const auto& [way, socket] : sockets_) socket->drop();
  peers_.clear();
  sockets_.clear();
  group_senders_.clear();
  group_receivers_.clear();
  shared_port_sockets_.clear();
  peer_sockets_.clear();
}

void UvDatagrams::State::open_unicast_sockets() {
  for (const auto family : {IpAddress::Family::v4, IpAddress::Family::v6}) {
    if (auto opened = DatagramSocket::open_unicast(loop_, family, 0, on_datagram_to(last_way_ + 1)); opened.ok())
      peer_sockets_[family == IpAddress::Family::v4 ? AF_INET : AF_INET6] = keep(opened.value());
    if (!options_.hears_shared_port) continue;
    auto shared = DatagramSocket::open_unicast(loop_, family, options_.port, on_datagram_to(last_way_ + 1));
    if (shared.ok())
      shared_port_sockets_.push_back(keep(shared.value()));
    else
      failure_ = shared.status();
  }
}

void UvDatagrams::State::open_place(const ListedInterface& interface, IpAddress::Family family) {
  const auto own = own_address(interface, family);
  if (!own) return;
  const uv::GroupPlace place{group_of(family), options_.port, interface.index, *own};
  const auto same = [&](const GroupSender& sender) { return sender.interface == place.interface && sender.own == place.own; };
  auto sender = std::find_if(group_senders_.begin(), group_senders_.end(), same);
  if (sender == group_senders_.end()) {
    auto opened = DatagramSocket::open_group_sender(loop_, place, on_datagram_to(last_way_ + 1));
    if (!opened.ok()) {
      failure_ = opened.status();
      return;
    }
    const auto group = uv::socket_address(place.group, place.port, place.interface);
    sender = group_senders_.insert(group_senders_.end(), {keep(opened.value()), group, place.interface, place.own});
  }
  if (group_receivers_.count(sender->way) != 0) return;
  // The sender answers datagrams that the receiver gets, since no socket can send from a group's address.
  auto receiver = DatagramSocket::open_group_receiver(loop_, place, on_datagram_to(sender->way));
  if (receiver.ok())
    group_receivers_[sender->way] = keep(receiver.value());
  else
    failure_ = receiver.status();
}

void UvDatagrams::State::open_missing() {
  for (const ListedInterface& interface : interfaces_)
    for (const auto family : {IpAddress::Family::v4, IpAddress::Family::v6}) open_place(interface, family);
}

void UvDatagrams::State::close_stale() {
  const auto stale = [&](const GroupSender& sender) {
    const bool lives = std::any_of(interfaces_.begin(), interfaces_.end(), [&](const ListedInterface& one) {
      return one.index == sender.interface && own_address(one, sender.own.family()) == sender.own;
    });
    if (lives) return false;
    close(sender.way);
    if (const auto receiver = group_receivers_.find(sender.way); receiver != group_receivers_.end()) {
      close(receiver->second);
      group_receivers_.erase(receiver);
    }
    return true;
  };
  std::erase_if(group_senders_, stale);
}

void UvDatagrams::State::refresh() {
  timer_ = loop_.after(kBetweenListings, [this] { refresh(); });
  auto now = uv::choose_interfaces(uv::list_interfaces(), options_.interfaces);
  const bool changed = now != interfaces_;
  interfaces_ = std::move(now);
  if (changed) close_stale();
  // Sockets that could not be opened the last time are tried again.
  open_missing();
  if (changed) user_->interfaces_changed();
}

void UvDatagrams::State::send_to_all(ConstBytes bytes) {
  for (const GroupSender& sender : group_senders_) sockets_.at(sender.way)->send(sender.group, bytes);
}

void UvDatagrams::State::send_to_peers(ConstBytes bytes) {
  for (const uv::NamedPeer* peer : peers_)
    for (const SocketAddress& address : peer->addresses())
      if (const auto found = peer_sockets_.find(address.family()); found != peer_sockets_.end())
        sockets_.at(found->second)->send(address, bytes);
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
bool UvDatagrams::is_from_peers(const DatagramSource& from) const { return state_->is_from_peers(from); }
Status UvDatagrams::status() const { return state_->status(); }
std::string UvDatagrams::describe_unknown() const { return state_->describe_unknown(); }
std::uint16_t UvDatagrams::shared_port() const { return state_->shared_port(); }

std::vector<NetworkInterface> UvDatagrams::interfaces() const {
  std::vector<NetworkInterface> all;
  for (const ListedInterface& one : state_->interfaces()) all.push_back({one.name, one.addresses});
  return all;
}

}  // namespace ringlet
