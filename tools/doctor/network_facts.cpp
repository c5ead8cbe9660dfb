#include "tools/doctor/network_facts.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "transport/unique_fd.hpp"
#include "transport/uv/interface_list.hpp"
#include "transport/uv/system_addresses.hpp"

namespace ringlet::doctor {

namespace {

using Clock = std::chrono::steady_clock;

struct Freed {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

std::unique_ptr<addrinfo, Freed> look_up(const std::string& host, const char* port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), port, &hints, &list) != 0) list = nullptr;
  return std::unique_ptr<addrinfo, Freed>(list);
}

std::string text_of(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(&address, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return host.data();
}

socklen_t size_of(const sockaddr& address) { return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

bool is_internet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

ConstBytes bytes_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in&>(address).sin_addr, 1));
  return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 1));
}

std::uint32_t mtu_of(const char* name) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  if (!socket || ::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

/// Returns the interface that has this address of this machine.
std::string interface_with(const sockaddr& own) {
  const auto list = uv::system_addresses();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next)
    if (is_internet(entry->ifa_addr) && entry->ifa_addr->sa_family == own.sa_family &&
        std::ranges::equal(bytes_of(*entry->ifa_addr), bytes_of(own)))
      return entry->ifa_name;
  return {};
}

Reach reach_of(int error) {
  switch (error) {
    case 0:
      return Reach::good;
    case ECONNREFUSED:
      return Reach::refused;
    case ETIMEDOUT:
      return Reach::silent;
    default:
      return Reach::unreachable;
  }
}

struct Attempt {
  UniqueFd socket;
  PathFacts* path = nullptr;
};

void settle(Attempt& attempt, int error) {
  attempt.path->reach = reach_of(error);
  if (error != 0) attempt.path->text = std::strerror(error);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(attempt.socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
    attempt.path->interface = interface_with(reinterpret_cast<const sockaddr&>(own));
  attempt.socket = UniqueFd();
}

/// Starts a connection attempt. Returns nothing if the result is known already.
std::optional<Attempt> begin(PathFacts& path) {
  Attempt attempt{UniqueFd(), &path};
  const auto found = look_up(path.to.host, std::to_string(path.to.port).c_str(), AI_NUMERICHOST | AI_NUMERICSERV);
  if (found) attempt.socket = UniqueFd(::socket(found->ai_family, SOCK_STREAM, 0));
  if (!attempt.socket || ::fcntl(attempt.socket.get(), F_SETFL, O_NONBLOCK) != 0) {
    path.reach = Reach::unreachable;
    path.text = found ? std::strerror(errno) : "not a numeric address";
    return std::nullopt;
  }
  const int result = ::connect(attempt.socket.get(), found->ai_addr, found->ai_addrlen);
  if (result != 0 && errno == EINPROGRESS) return attempt;
  settle(attempt, result == 0 ? 0 : errno);
  return std::nullopt;
}

}  // namespace

std::vector<InterfaceFacts> interface_facts() {
  std::vector<InterfaceFacts> all;
  const auto list = uv::system_addresses();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    auto found = std::find_if(all.begin(), all.end(), [&](const InterfaceFacts& one) { return one.name == entry->ifa_name; });
    if (found == all.end()) {
      const bool loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      all.push_back({entry->ifa_name,
                     {},
                     loopback,
                     uv::leads_inside(entry->ifa_name),
                     (entry->ifa_flags & IFF_MULTICAST) != 0,
                     mtu_of(entry->ifa_name)});
      found = all.end() - 1;
    }
    if (is_internet(entry->ifa_addr)) found->addresses.push_back(text_of(*entry->ifa_addr, size_of(*entry->ifa_addr)));
  }
  return all;
}

bool is_neighbour(const std::string& host) {
  const auto target = look_up(host, nullptr, AI_NUMERICHOST);
  if (!target) return false;
  const ConstBytes wanted = bytes_of(*target->ai_addr);
  const auto list = uv::system_addresses();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (!is_internet(entry->ifa_addr) || entry->ifa_netmask == nullptr || entry->ifa_addr->sa_family != target->ai_addr->sa_family)
      continue;
    if ((entry->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP) continue;
    const ConstBytes own = bytes_of(*entry->ifa_addr), mask = bytes_of(*entry->ifa_netmask);
    bool same = true;
    for (std::size_t i = 0; i < wanted.size(); ++i) same = same && ((wanted[i] ^ own[i]) & mask[i]) == std::byte{0};
    if (same) return true;
  }
  return false;
}

std::vector<std::string> resolve(const std::string& host) {
  std::vector<std::string> all;
  const auto list = look_up(host, nullptr, 0);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next)
    if (is_internet(entry->ai_addr)) all.push_back(text_of(*entry->ai_addr, entry->ai_addrlen));
  return all;
}

std::vector<PathFacts> knock(const std::vector<Address>& addresses, std::chrono::milliseconds patience) {
  std::vector<PathFacts> paths(addresses.size());
  std::vector<Attempt> open;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    paths[i].to = addresses[i];
    if (auto attempt = begin(paths[i])) open.push_back(std::move(*attempt));
  }
  const auto deadline = Clock::now() + patience;
  while (!open.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    std::vector<pollfd> watched;
    for (const Attempt& attempt : open) watched.push_back({attempt.socket.get(), POLLOUT, 0});
    if (::poll(watched.data(), watched.size(), static_cast<int>(left)) < 0 && errno != EINTR) break;
    for (std::size_t i = open.size(); i-- > 0;) {
      if (watched[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      if (::getsockopt(open[i].socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
      settle(open[i], error);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (Attempt& attempt : open) {
    settle(attempt, ETIMEDOUT);
    attempt.path->text = "no answer within " + std::to_string(patience.count()) + " ms";
  }
  return paths;
}

}  // namespace ringlet::doctor
