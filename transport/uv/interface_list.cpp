#include "transport/uv/interface_list.hpp"

#include <net/if.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ringlet::uv {
namespace {

constexpr std::size_t kMaxChosenInterfaces = 16;

IpAddress address_of(const uv_interface_address_t& entry) {
  if (entry.address.address4.sin_family == AF_INET)
    return *IpAddress::from_bytes(std::as_bytes(std::span(&entry.address.address4.sin_addr, 1)));
  return *IpAddress::from_bytes(std::as_bytes(std::span(&entry.address.address6.sin6_addr, 1)));
}

}  // namespace

bool leads_inside(std::string_view name) {
  constexpr std::array<std::string_view, 13> kBeginnings{"docker", "br-", "veth",   "virbr",   "vmnet", "vboxnet", "lxc",
                                                         "lxd",    "cni", "podman", "flannel", "cali",  "bridge10"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view beginning) { return name.starts_with(beginning); });
}

std::vector<ListedInterface> list_interfaces() {
  std::vector<ListedInterface> all;
  uv_interface_address_t* list = nullptr;
  int count = 0;
  if (uv_interface_addresses(&list, &count) != 0) return all;
  for (const auto& entry : std::span(list, static_cast<std::size_t>(count))) {
    auto place = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == entry.name; });
    if (place == all.end()) place = all.insert(all.end(), {entry.name, if_nametoindex(entry.name), entry.is_internal != 0, {}});
    if (const IpAddress address = address_of(entry); address.is_unicast()) place->addresses.push_back(address);
  }
  uv_free_interface_addresses(list, count);
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
