#include "core/rendezvous/path_choice.hpp"

#include <algorithm>
#include <tuple>

namespace ringlet {

namespace {

constexpr double kMessageBytes = 1 << 20;
// Measurements of a few milliseconds differ by this factor at random.
constexpr double kNear = 1.5;

double cost_ns(const wire::Path& path) {
  return static_cast<double>(path.round_trip_ns) + kMessageBytes * static_cast<double>(path.byte_ps) / 1000;
}

int worth(wire::Endpoint::Kind kind) { return kind == wire::Endpoint::Kind::wired ? 2 : kind == wire::Endpoint::Kind::unknown ? 1 : 0; }

}  // namespace

std::size_t choose_path(std::span<const wire::Path> paths) {
  double fastest = cost_ns(paths.front());
  for (const auto& path : paths) fastest = std::min(fastest, cost_ns(path));
  std::size_t chosen = paths.size();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (cost_ns(paths[i]) > fastest * kNear) continue;
    const auto rating = [&](std::size_t index) { return std::tuple(worth(paths[index].kind), paths[index].speed_mbps); };
    if (chosen == paths.size() || rating(i) > rating(chosen)) chosen = i;
  }
  return chosen;
}

std::vector<wire::Endpoint> targets_of(const wire::Member& member) {
  std::vector<wire::Endpoint> targets;
  const auto add = [&](const wire::Endpoint& endpoint) {
    if (endpoint.port == 0 || endpoint.port > 65'535) return;
    if (std::none_of(targets.begin(), targets.end(),
                     [&](const auto& target) { return target.host == endpoint.host && target.port == endpoint.port; }))
      targets.push_back(endpoint);
  };
  for (const auto& endpoint : member.endpoints) add(endpoint);
  add({member.host, member.port});
  return targets;
}

wire::Path path_between(const wire::Endpoint& dialler, const wire::Endpoint& acceptor) {
  wire::Path path;
  path.dialler_interface = dialler.interface;
  path.acceptor_interface = acceptor.interface;
  path.kind = worth(dialler.kind) < worth(acceptor.kind) ? dialler.kind : acceptor.kind;
  const auto [lower, higher] = std::minmax(dialler.speed_mbps, acceptor.speed_mbps);
  path.speed_mbps = lower > 0 ? lower : higher;
  return path;
}

bool is_same_way(const wire::Path& one, const wire::Path& other) {
  return !one.dialler_interface.empty() && !one.acceptor_interface.empty() && one.dialler_interface == other.dialler_interface &&
         one.acceptor_interface == other.acceptor_interface;
}

bool is_worth_a_race(const wire::Member& rank0) {
  const auto targets = targets_of(rank0);
  return !rank0.endpoints.empty() && targets.size() > 1;
}

}  // namespace ringlet
