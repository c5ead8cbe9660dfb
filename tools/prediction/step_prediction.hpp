#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/wire.hpp>
#include <string_view>
#include <vector>

#include "core/plan/collective_table.hpp"
#include "tools/prediction/measured_links.hpp"
#include "tools/prediction/side_by_side.hpp"

namespace ringlet::prediction {

/// What a step moves. Gradients go in buckets of the library's default size, one after the other.
struct StepModel {
  std::uint64_t parameters = 0;
  DType dtype = DType::f32;  // floating: of gradients and parameters
};

/// How gradients cross the network; if it is unset, in their own dtype.
using WireChoice = std::optional<Wire>;
std::string_view name_of(const WireChoice& wire, const StepModel& model);
/// The wires that send fewer bytes than gradients of this dtype, and sending them as they are: those that advice is about, with the most
/// bytes first.
std::vector<WireChoice> usual_wires(DType dtype);

/// A setting of all ranks by which the engine chooses another algorithm.
enum class AlgorithmSetting : std::uint8_t {
  none,            // parts that follow the links where no bit depends on them, as they are once this has shown while the ranks train
  own_machines,    // RINGLET_PLACEMENT=ring: each rank as if it had a machine of its own
  measured_parts,  // RINGLET_PARTS=measured
  rank_order,      // RINGLET_ORDER=rank
};
/// What has to be in the ranks' environment; empty for `none`.
std::string_view name_of(AlgorithmSetting setting) noexcept;

/// The time of a step's communication.
struct Prediction {
  WireChoice wire;
  // FSDP: a reduce-scatter by the wire, whose algorithm this has, and an all-gather of unrounded parameters, in place of the average.
  bool sharded = false;
  AlgorithmSetting setting = AlgorithmSetting::none;
  Algorithm algorithm = Algorithm::ring;
  double nanoseconds = 0;
  double bytes_per_parameter = 0;  // that leave the port which sends most
};

/// Predicts averages of gradients by this wire, with each setting that leads to another algorithm. One rank communicates nothing.
std::vector<Prediction> predict_averages(const StepModel& model, const WireChoice& wire, const RankNetwork& network);
/// The same by all of these wires, and after that FSDP by each of the wires; on several threads.
std::vector<Prediction> predict(const StepModel& model, const std::vector<WireChoice>& wires, const RankNetwork& network,
                                const Watch& watch = {});

/// The speed that the ranks would give each other's links when they meet with RINGLET_PARTS=measured (kFullSpeed); all kFullSpeed if none
/// is slow.
std::vector<std::uint32_t> speeds_of(const RankNetwork& network);

}  // namespace ringlet::prediction
