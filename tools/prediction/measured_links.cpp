#include "tools/prediction/measured_links.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace ringlet::prediction {

namespace {

/// One rank's view of its links.
struct PortLinks {
  std::vector<double> exchanges;
  double out = std::numeric_limits<double>::infinity(), in = out, both_ways = out;

  void add(double exchange, double byte_out, double byte_in, double byte_both_ways) {
    exchanges.push_back(exchange);
    out = std::min(out, byte_out);
    in = std::min(in, byte_in);
    both_ways = std::min(both_ways, byte_both_ways);
  }

  PortCost cost() {
    std::sort(exchanges.begin(), exchanges.end());
    const double exchange = exchanges[exchanges.size() / 2];
    const double together = std::max(both_ways / std::max(out, in), 1.0);
    return port_cost(exchange, out * together, in * together);
  }
};

}  // namespace

PortCost port_cost(double exchange, double per_byte_out, double per_byte_in) {
  constexpr double kMostPerFrame = 5'000;
  const double per_frame = std::min(kMostPerFrame, exchange / 4);
  return {exchange - per_frame, per_byte_out, per_byte_in, per_frame};
}

std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int size) {
  // The places of a circle: the first one stays where it is, the others go on by one for each round, and opposite places meet.
  const int places = size + size % 2;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round + 1 < places; ++round) {
    const auto rank_at = [&](int place) { return place == 0 ? 0 : 1 + (place - 1 + round) % (places - 1); };
    auto& pairs = rounds.emplace_back();
    for (int place = 0; place < places / 2; ++place) {
      const auto [low, high] = std::minmax({rank_at(place), rank_at(places - 1 - place)});
      if (high < size) pairs.emplace_back(low, high);
    }
  }
  return rounds;
}

RankNetwork RankNetwork::without_machine_of(int rank) const {
  RankNetwork others{{}, {}, within};
  for (int other = 0; other < size(); ++other) {
    if (same_machine(rank, other)) continue;
    others.ports.push_back(ports[static_cast<std::size_t>(other)]);
    if (!machines.empty()) others.machines.push_back(machines[static_cast<std::size_t>(other)]);
  }
  if (!machines.empty() && leads_of(others.size(), others.machines).size() == 1) {
    others.ports.assign(others.ports.size(), within);
    others.machines.clear();
  }
  return others;
}

std::vector<int> leads_of(int size, const std::vector<int>& machines) {
  std::vector<int> leads;
  for (int rank = 0; rank < size; ++rank) {
    const auto before = std::span(machines).first(machines.empty() ? 0 : static_cast<std::size_t>(rank));
    const bool leads_machine = machines.empty() || std::find(before.begin(), before.end(), machines[before.size()]) == before.end();
    if (leads_machine) leads.push_back(rank);
  }
  return leads;
}

std::vector<std::pair<int, int>> pairs_within(int size, const std::vector<int>& machines) {
  std::vector<std::pair<int, int>> pairs;
  if (machines.empty()) return pairs;
  for (const int lead : leads_of(size, machines)) {
    const auto own = machines.begin() + lead;
    const auto second = std::find(own + 1, machines.end(), *own);
    if (second != machines.end()) pairs.emplace_back(lead, static_cast<int>(second - machines.begin()));
  }
  return pairs;
}

RankNetwork network_of(int size, const std::vector<int>& machines, std::span<const MeasuredLink> links,
                       std::span<const MeasuredLink> within_machines) {
  const std::vector<int> leads = leads_of(size, machines);
  const auto place_of = [&](int lead) { return static_cast<int>(std::find(leads.begin(), leads.end(), lead) - leads.begin()); };
  std::vector<MeasuredLink> of_places(links.begin(), links.end());
  for (MeasuredLink& link : of_places) {
    link.one = place_of(link.one);
    link.other = place_of(link.other);
  }
  const std::vector<PortCost> lead_ports = ports_of(static_cast<int>(leads.size()), of_places);
  RankNetwork network{{}, machines};
  for (int rank = 0; rank < size; ++rank) {
    const auto lead = std::find_if(leads.begin(), leads.end(), [&](int one) {
      return machines.empty() ? one == rank : machines[static_cast<std::size_t>(one)] == machines[static_cast<std::size_t>(rank)];
    });
    network.ports.push_back(lead_ports[static_cast<std::size_t>(lead - leads.begin())]);
  }
  network.within = {0, 0, 0, 0};
  for (MeasuredLink link : within_machines) {
    link.one = 0;
    link.other = 1;
    const PortCost cost = ports_of(2, std::span(&link, 1)).front();
    if (cost.per_byte_out > network.within.per_byte_out) network.within = cost;
  }
  return network;
}

std::vector<PortCost> ports_of(int size, std::span<const MeasuredLink> links) {
  std::vector<PortLinks> of_rank(static_cast<std::size_t>(size));
  for (const MeasuredLink& link : links) {
    of_rank[static_cast<std::size_t>(link.one)].add(link.exchange, link.byte_to_other, link.byte_to_one, link.byte_both_ways);
    of_rank[static_cast<std::size_t>(link.other)].add(link.exchange, link.byte_to_one, link.byte_to_other, link.byte_both_ways);
  }
  std::vector<PortCost> ports;
  for (PortLinks& own : of_rank) ports.push_back(own.cost());
  return ports;
}

std::vector<MeasuredLink> slower_than_ports(std::span<const MeasuredLink> links, const std::vector<PortCost>& ports, double factor) {
  std::vector<MeasuredLink> slower;
  for (const MeasuredLink& link : links) {
    const PortCost &one = ports[static_cast<std::size_t>(link.one)], &other = ports[static_cast<std::size_t>(link.other)];
    if (link.byte_to_other > factor * std::max(one.per_byte_out, other.per_byte_in) ||
        link.byte_to_one > factor * std::max(other.per_byte_out, one.per_byte_in))
      slower.push_back(link);
  }
  return slower;
}

}  // namespace ringlet::prediction
