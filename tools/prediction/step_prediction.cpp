#include "tools/prediction/step_prediction.hpp"

#include <algorithm>
#include <array>
#include <ringlet/average_options.hpp>
#include <ringlet/fsdp.hpp>

#include "core/gradients/bucket.hpp"
#include "core/plan/placement.hpp"
#include "core/rendezvous/link_probes.hpp"

namespace ringlet::prediction {

namespace {

constexpr std::array<std::string_view, 4> kSettingNames{"", "RINGLET_PLACEMENT=ring", "RINGLET_PARTS=measured", "RINGLET_ORDER=rank"};

/// The inputs of the engine's choice of an algorithm.
struct Conditions {
  AlgorithmSetting setting = AlgorithmSetting::none;
  Topology topology{};
  Placement placement{};
};

Conditions conditions_of(AlgorithmSetting setting, const RankNetwork& network) {
  Conditions conditions{setting};
  conditions.topology.set_machines(network.machines, MachineLimits{});
  if (setting == AlgorithmSetting::rank_order) conditions.placement.order = ReduceOrder::rank;
  if (setting == AlgorithmSetting::own_machines) conditions.placement.policy = PlacementPolicy::ring;
  // Without a setting, too, parts follow the links once the ranks train.
  conditions.placement.parts = PartsPolicy::passive;
  conditions.topology.set_speeds(speeds_of(network));
  if (setting != AlgorithmSetting::measured_parts) return conditions;
  conditions.placement.parts = PartsPolicy::measured;
  // As the ranks do: the cost of the fastest links, of which slower ones take a multiple.
  const auto slower_way = [](const PortCost& port) { return std::max(port.per_byte_out, port.per_byte_in); };
  const auto fastest = std::min_element(network.ports.begin(), network.ports.end(),
                                        [&](const PortCost& one, const PortCost& other) { return slower_way(one) < slower_way(other); });
  conditions.placement.native = {fastest->latency, slower_way(*fastest)};
  return conditions;
}

WireFormat format_of(const WireChoice& wire, DType dtype) {
  if (!wire) return {dtype};
  return wire->blocks() ? WireFormat{DType::f32, wire->blocks()} : WireFormat{wire->dtype()};
}

/// One collective of so many elements; those in blocks count as whole blocks.
Call call_of(CollectiveKind kind, const WireFormat& format, std::uint64_t elements, int size, const Conditions& conditions) {
  Call call;
  call.kind = kind;
  call.dtype = format.dtype;
  call.blocks = format.blocks;
  call.divisor = reduces(kind) ? size : 1;
  call.rows = (elements + format.granule() - 1) / format.granule();
  const std::size_t whole = call.bytes();
  if (kind == CollectiveKind::all_gather) call.rows = (call.rows + static_cast<std::uint64_t>(size) - 1) / static_cast<std::uint64_t>(size);
  call.algorithm = choose_algorithm(call, whole, size, conditions.topology, AlgorithmLimits{}, conditions.placement);
  return call;
}

/// Collectives of all elements, in buckets of `most_bytes`, one after the other.
void add_buckets(Prediction& prediction, CollectiveKind kind, const WireFormat& format, const StepModel& model, std::int64_t most_bytes,
                 const RankNetwork& network, const Conditions& conditions) {
  const int size = network.size();
  const std::uint64_t granules = static_cast<std::uint64_t>(format.bucket_bytes(most_bytes)) / format.unit_bytes();
  const std::uint64_t bucket_elements = granules * format.granule();
  const std::uint64_t full = model.parameters / bucket_elements, rest = model.parameters % bucket_elements;
  for (const auto& [times, elements] : {std::pair{full, bucket_elements}, {rest > 0 ? std::uint64_t{1} : std::uint64_t{0}, rest}}) {
    if (times == 0) continue;
    const Call call = call_of(kind, format, elements, size, conditions);
    const PlanCost cost = cost_of(call, conditions.topology, network.ports, granules_of(call, size), network.within);
    prediction.nanoseconds += static_cast<double>(times) * cost.nanoseconds;
    prediction.bytes_per_parameter += static_cast<double>(times * cost.most_bytes_out) / static_cast<double>(model.parameters);
    // A rest that is small may take another one, which says little of the whole.
    if (times * elements * 2 >= model.parameters) prediction.algorithm = call.algorithm;
  }
}

Prediction predict_average(const StepModel& model, const WireChoice& wire, const RankNetwork& network, const Conditions& conditions) {
  Prediction prediction{wire, false, conditions.setting};
  add_buckets(prediction, CollectiveKind::all_reduce, format_of(wire, model.dtype), model, AverageOptions{}.all_reduce_size, network,
              conditions);
  return prediction;
}

Prediction predict_sharded(const StepModel& model, const WireChoice& wire, const RankNetwork& network) {
  Prediction prediction{wire, true};
  Conditions conditions = conditions_of(AlgorithmSetting::none, network);
  conditions.topology.set_speeds({});  // shards stay where they are
  const std::int64_t most_bytes = FsdpOptions{}.communication_size;
  // The last one's algorithm is told.
  add_buckets(prediction, CollectiveKind::all_gather, WireFormat{model.dtype}, model, most_bytes, network, conditions);
  add_buckets(prediction, CollectiveKind::reduce_scatter, format_of(wire, model.dtype), model, most_bytes, network, conditions);
  return prediction;
}

}  // namespace

std::string_view name_of(const WireChoice& wire, const StepModel& model) {
  return wire ? ringlet::name_of(*wire) : ringlet::name_of(model.dtype);
}

std::string_view name_of(AlgorithmSetting setting) noexcept { return kSettingNames[static_cast<std::size_t>(setting)]; }

std::vector<WireChoice> usual_wires(DType dtype) {
  std::vector<WireChoice> wires{std::nullopt};
  // f16 sends as many bytes as bf16, and has less room for large gradients.
  if (!is_narrow(dtype)) wires.emplace_back(DType::bf16);
  wires.emplace_back(Wire::int8());
  wires.emplace_back(Wire::int4());
  return wires;
}

std::vector<Prediction> predict_averages(const StepModel& model, const WireChoice& wire, const RankNetwork& network) {
  if (network.size() < 2) return {{wire}};
  std::vector<Prediction> predictions;
  for (const AlgorithmSetting setting :
       {AlgorithmSetting::none, AlgorithmSetting::own_machines, AlgorithmSetting::measured_parts, AlgorithmSetting::rank_order}) {
    if (setting == AlgorithmSetting::own_machines && network.machines.empty()) continue;
    Prediction prediction = predict_average(model, wire, network, conditions_of(setting, network));
    const bool is_known = std::any_of(predictions.begin(), predictions.end(),
                                      [&](const Prediction& other) { return other.algorithm == prediction.algorithm; });
    if (!is_known) predictions.push_back(std::move(prediction));
  }
  return predictions;
}

std::vector<Prediction> predict(const StepModel& model, const std::vector<WireChoice>& wires, const RankNetwork& network,
                                const Watch& watch) {
  using Predictions = std::vector<Prediction>;
  std::vector<std::function<Predictions()>> tasks;
  for (const WireChoice& wire : wires) tasks.emplace_back([&] { return predict_averages(model, wire, network); });
  if (network.size() >= 2)
    for (const WireChoice& wire : wires) tasks.emplace_back([&] { return Predictions{predict_sharded(model, wire, network)}; });
  Predictions all;
  for (const Predictions& some : side_by_side(tasks, watch)) all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::vector<std::uint32_t> speeds_of(const RankNetwork& network) {
  // Of two ranks nobody can say which end of their link is slow.
  if (network.size() <= 2) return std::vector<std::uint32_t>(network.ports.size(), kFullSpeed);
  // The ranks measure the links to the next two on other machines, as fast as the slower end of each and in both directions at once.
  MeasuredCosts measured;
  const auto slower_end = [&](int rank, int distance) {
    const int peer = (rank + distance) % network.size();
    if (network.same_machine(rank, peer)) return std::uint64_t{0};
    const PortCost &one = network.ports[static_cast<std::size_t>(rank)], &other = network.ports[static_cast<std::size_t>(peer)];
    return static_cast<std::uint64_t>(1e3 * std::max({one.per_byte_out, one.per_byte_in, other.per_byte_out, other.per_byte_in}));
  };
  for (int rank = 0; rank < network.size(); ++rank) {
    measured.next_byte_ps.push_back(slower_end(rank, 1));
    measured.second_byte_ps.push_back(slower_end(rank, 2));
  }
  std::vector<std::uint32_t> speeds = ringlet::speeds_of(measured);
  speeds.resize(network.ports.size(), kFullSpeed);
  return speeds;
}

}  // namespace ringlet::prediction
