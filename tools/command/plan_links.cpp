#include "tools/command/plan_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "native/shared_group.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewestBytes = 64 << 10, kMostBytes = 64 << 20;
constexpr int kRepetitions = 3;             // of which the fastest counts
constexpr double kKinds = 3;                // of long measurements: to the other, from it, both at once
constexpr double kLeastSeconds = 0.01;      // of one long measurement
constexpr std::size_t kNumbersOfLink = 4;   // that a MeasuredLink has beside its ranks
constexpr std::size_t kProgressLines = 10;  // at most

/// Measures between the two ranks of a group. Both get the same numbers, in nanoseconds.
class PairMeasurement {
 public:
  explicit PairMeasurement(Group pair) : pair_(std::move(pair)), values_(kFewestBytes / sizeof(float)) {}

  std::array<double, kNumbersOfLink> run(double seconds) {
    const double exchange = exchange_ns();
    choose_length(seconds);
    // A message's way is no part of what its bytes take.
    const auto per_byte = [&](int sends, const std::function<void()>& call) {
      const double all = fastest_ns(call);
      return std::max(all - sends * exchange, all / 2) / static_cast<double>(values_.size() * sizeof(float));
    };
    return {exchange, per_byte(1, [&] { pair_.broadcast(std::span(values_), 0); }),
            per_byte(1, [&] { pair_.broadcast(std::span(values_), 1); }), per_byte(2, [&] { pair_.all_sum(std::span(values_)); })};
  }

 private:
  /// The time of the slower of the two ranks.
  double timed_ns(const std::function<void()>& call) {
    pair_.barrier();
    const auto start = Clock::now();
    call();
    double took = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    pair_.all_max(std::span(&took, 1));
    return took;
  }

  double fastest_ns(const std::function<void()>& call) {
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRepetitions; ++i) fastest = std::min(fastest, timed_ns(call));
    return fastest;
  }

  double exchange_ns() {
    constexpr double kBatchNs = 20e6;
    constexpr int kMostCalls = 100;
    float value = 0;
    const auto exchange = [&] { pair_.all_sum(std::span(&value, 1)); };
    const double first = std::max(fastest_ns(exchange), 1.0);
    const int calls = static_cast<int>(std::clamp(kBatchNs / first, 1.0, static_cast<double>(kMostCalls)));
    return fastest_ns([&] {
             for (int i = 0; i < calls; ++i) exchange();
           }) /
           calls;
  }

  /// Takes longer messages until one takes the wanted time, which also gives the connection the time that it needs to become fast.
  void choose_length(double seconds) {
    constexpr double kMostGrowth = 8;
    for (;;) {
      const double took = timed_ns([&] { pair_.all_sum(std::span(values_)); });
      const std::size_t bytes = values_.size() * sizeof(float);
      if (took >= seconds * 1e9 / 2 || bytes >= kMostBytes) return;
      const double growth = std::clamp(seconds * 1e9 / took, 2.0, kMostGrowth);
      values_.resize(std::min(static_cast<std::size_t>(static_cast<double>(bytes) * growth), kMostBytes) / sizeof(float));
    }
  }

  Group pair_;
  std::vector<float> values_;  // zeros
};

void show_progress(std::size_t round, std::size_t rounds) {
  const std::size_t every = (rounds + kProgressLines - 1) / kProgressLines;
  if (round % every == 0) launch::print_error("ringlet plan: measuring links, round {} of {}\n", round + 1, rounds);
}

/// Ranks as the group itself counts them to machines.
std::vector<int> machines_of(const Group& group) {
  const Topology& topology = group.shared().options().topology;
  std::vector<int> machines;
  for (int rank = 0; rank < group.size() && topology.has_shared_machines(); ++rank) machines.push_back(topology.machine_of(rank));
  return machines;
}

using Pairs = std::vector<std::pair<int, int>>;

/// The pairs of each round: first those within machines, then those between them.
std::vector<Pairs> rounds_of(int size, const std::vector<int>& machines) {
  const std::vector<int> leads = prediction::leads_of(size, machines);
  std::vector<Pairs> rounds;
  if (!machines.empty()) rounds.push_back(prediction::pairs_within(size, machines));
  for (Pairs& round : prediction::rounds_of_pairs(static_cast<int>(leads.size()))) {
    for (auto& [one, other] : round) {
      one = leads[static_cast<std::size_t>(one)];
      other = leads[static_cast<std::size_t>(other)];
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

LinkMeasurements measure_links(Group& group, double seconds) {
  LinkMeasurements measured;
  measured.machines = machines_of(group);
  const std::vector<Pairs> rounds = rounds_of(group.size(), measured.machines);
  const double wanted = std::max(seconds / (static_cast<double>(rounds.size()) * (kKinds * kRepetitions + 2)), kLeastSeconds);
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<double> own(ranks * kNumbersOfLink), all(ranks * own.size());
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (group.rank() == 0) show_progress(round, rounds.size());
    // The pairs of one round begin together, as the ranks of a collective do.
    group.barrier();
    for (const auto& [one, other] : rounds[round]) {
      if (group.rank() != one && group.rank() != other) continue;
      const std::array members{one, other};
      const auto numbers = PairMeasurement(group.create(members)).run(wanted);
      const auto peer = static_cast<std::size_t>(group.rank() == one ? other : one);
      std::copy(numbers.begin(), numbers.end(), own.begin() + static_cast<std::ptrdiff_t>(peer * kNumbersOfLink));
    }
  }
  group.all_gather(std::span<const double>(own), std::span(all));
  for (const Pairs& round : rounds) {
    for (const auto& [one, other] : round) {
      const double* numbers = &all[(static_cast<std::size_t>(one) * ranks + static_cast<std::size_t>(other)) * kNumbersOfLink];
      const bool is_within = !measured.machines.empty() && &round == &rounds.front();
      (is_within ? measured.within : measured.between).push_back({one, other, numbers[0], numbers[1], numbers[2], numbers[3]});
    }
  }
  return measured;
}

}  // namespace ringlet::command
