#include "tools/prediction/advice.hpp"

#include <algorithm>
#include <array>

#include "core/plan/topology.hpp"

namespace ringlet::prediction {

namespace {

constexpr double kWorthASetting = 0.95;
// docs/library.md has what they cost in loss; more have not been measured.
constexpr std::array kInnerSteps{2, 5, 10, 20, 25, 50};

double most_ns(double compute_ns) { return compute_ns * kAcceptableShare / (1 - kAcceptableShare); }

Advice advise_inner_steps(const Prediction& average, double compute_ns) {
  Advice advice{average};
  for (const int steps : kInnerSteps) {
    advice.inner_steps = steps;
    advice.ns_per_step = average.nanoseconds / steps;
    advice.enough = advice.ns_per_step <= most_ns(compute_ns);
    if (advice.enough) break;
  }
  return advice;
}

}  // namespace

const Prediction& best_average(const std::vector<Prediction>& predictions, const WireChoice& wire) {
  const Prediction* best = nullptr;
  for (const Prediction& one : predictions) {
    if (one.sharded || one.wire != wire) continue;
    if (best == nullptr || one.nanoseconds < best->nanoseconds * kWorthASetting) best = &one;
  }
  return best != nullptr ? *best : predictions.front();
}

double least_compute_ns(const Prediction& prediction) noexcept {
  return prediction.nanoseconds * (1 - kAcceptableShare) / kAcceptableShare;
}

Advice advise(const std::vector<Prediction>& predictions, const std::vector<WireChoice>& wires, double compute_ns) {
  const Prediction* cheapest = nullptr;
  for (const WireChoice& wire : wires) {
    const Prediction& best = best_average(predictions, wire);
    if (best.nanoseconds <= most_ns(compute_ns)) return {best, 1, best.nanoseconds, true};
    if (cheapest == nullptr || best.nanoseconds < cheapest->nanoseconds) cheapest = &best;
  }
  if (cheapest->nanoseconds <= compute_ns) return {*cheapest, 1, cheapest->nanoseconds, false};
  const WireChoice int8 = Wire::int8();
  const bool has_int8 = std::find(wires.begin(), wires.end(), int8) != wires.end();
  return advise_inner_steps(has_int8 ? best_average(predictions, int8) : *cheapest, compute_ns);
}

double PeerWorth::gain(double compute_ns) const noexcept {
  const double with = ranks / (compute_ns + with_ns), without = (ranks - count) / (compute_ns + without_ns);
  return with / without;
}

std::vector<PeerWorth> worths_of(const std::vector<int>& ranks, const Prediction& average, const StepModel& model,
                                 const RankNetwork& network, const Watch& watch) {
  std::vector<std::function<double()>> tasks;
  for (const int rank : ranks)
    tasks.emplace_back([&, rank] {
      return best_average(predict_averages(model, average.wire, network.without_machine_of(rank)), average.wire).nanoseconds;
    });
  const std::vector<double> times = side_by_side(tasks, watch);
  const std::vector<std::uint32_t> speeds = speeds_of(network);
  std::vector<PeerWorth> worths;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int others = network.without_machine_of(ranks[i]).size();
    PeerWorth worth{ranks[i], network.size() - others, network.size()};
    worth.speed = static_cast<double>(speeds[static_cast<std::size_t>(ranks[i])]) / kFullSpeed;
    worth.with_ns = average.nanoseconds;
    worth.without_ns = times[i];
    worth.breaks_even = std::max((others * worth.with_ns - worth.ranks * worth.without_ns) / worth.count, 0.0);
    worths.push_back(worth);
  }
  return worths;
}

}  // namespace ringlet::prediction
