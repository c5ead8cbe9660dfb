#include "transport/uv/interface_list.hpp"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "transport/uv/system_addresses.hpp"

namespace ringlet::uv {
namespace {

constexpr std::size_t kMaxChosenInterfaces = 16;

/// Nothing where the entry has no address that packets go to and come from now.
std::optional<IpAddress> address_of(const ifaddrs& entry) {
  constexpr unsigned kInUse = IFF_UP | IFF_RUNNING;
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & kInUse) != kInUse) return std::nullopt;
  if (entry.ifa_addr->sa_family == AF_INET)
    return IpAddress::from_bytes(std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, 1)));
  if (entry.ifa_addr->sa_family == AF_INET6)
    return IpAddress::from_bytes(std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr, 1)));
  return std::nullopt;
}

}  // namespace

bool leads_inside(std::string_view name) {
  constexpr std::array<std::string_view, 13> kBeginnings{"docker", "br-", "veth",   "virbr",   "vmnet", "vboxnet", "lxc",
                                                         "lxd",    "cni", "podman", "flannel", "cali",  "bridge10"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view beginning) { return name.starts_with(beginning); });
}

std::vector<ListedInterface> list_interfaces() {
  std::vector<ListedInterface> all;
  const auto list = system_addresses();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const auto address = address_of(*entry);
    if (!address) continue;
    auto place = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == entry->ifa_name; });
    if (place == all.end())
      place = all.insert(all.end(), {entry->ifa_name, if_nametoindex(entry->ifa_name), (entry->ifa_flags & IFF_LOOPBACK) != 0, {}});
    if (address->is_unicast()) place->addresses.push_back(*address);
  }
  return all;
}

std::vector<ListedInterface> choose_interfaces(std::vector<ListedInterface> all, const std::vector<std::string>& wanted) {
  std::erase_if(all, [](const ListedInterface& one) { return one.addresses.empty(); });
  const auto keep = [&](auto condition) {
    std::vector<ListedInterface> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept), condition);
    return kept;
  };
  const auto mentioned = [&](const std::string& text) { return std::find(wanted.begin(), wanted.end(), text) != wanted.end(); };
  std::erase_if(all, [&](const ListedInterface& one) { return mentioned("!" + one.name); });
  std::vector<ListedInterface> chosen;
  if (std::any_of(wanted.begin(), wanted.end(), [](const std::string& text) { return !text.starts_with('!'); })) {
    chosen = keep([&](const auto& one) { return mentioned(one.name); });
  } else {
    chosen = keep([](const auto& one) { return !one.loopback && !leads_inside(one.name); });
    if (chosen.empty()) chosen = keep([](const auto& one) { return one.loopback; });
  }
  if (chosen.size() > kMaxChosenInterfaces) chosen.resize(kMaxChosenInterfaces);
  return chosen;
}

}  // namespace ringlet::uv
