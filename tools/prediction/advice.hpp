#pragma once

#include <vector>

#include "tools/prediction/step_prediction.hpp"

namespace ringlet::prediction {

/// Communication that takes no larger part of a step is taken as it is, without rounding tensors further for it.
inline constexpr double kAcceptableShare = 0.25;

/// Finds the average by this wire that takes least time. One that asks for a setting must save a twentieth.
const Prediction& best_average(const std::vector<Prediction>& predictions, const WireChoice& wire);

/// The least time for which a rank must compute in a step, so that this communication takes kAcceptableShare of the step.
double least_compute_ns(const Prediction& prediction) noexcept;

/// What to take for steps in which a rank computes for a given time.
struct Advice {
  Prediction average;
  int inner_steps = 1;     // above 1, at most 50: the ranks train alone for so many steps between two averages (OuterTrainer)
  double ns_per_step = 0;  // of communication
  bool enough = true;      // whether that is within kAcceptableShare
};

/// Takes the first wire of `wires` with which communication takes kAcceptableShare of a step; if there is none, the cheapest; if that still
/// takes longer than computing, averages of the parameters' differences in int8 blocks, as seldom as it needs and is known to learn.
/// Computing and communicating count one after the other.
Advice advise(const std::vector<Prediction>& predictions, const std::vector<WireChoice>& wires, double compute_ns);

/// What the ranks of one machine cost and bring.
struct PeerWorth {
  int rank = 0;            // the lowest of them
  int count = 1;           // of them
  int ranks = 0;           // of all machines
  double speed = 1;        // of the machine's links, relative to most others'
  double with_ns = 0;      // the average among all ranks
  double without_ns = 0;   // the average among the others
  double breaks_even = 0;  // a rank must compute for so many nanoseconds in a step, or the others train faster without these

  double compute_share() const noexcept { return static_cast<double>(count) / ranks; }
  /// Samples per second with these ranks, over those without them.
  double gain(double compute_ns) const noexcept;
};

/// Compares, for each of these ranks, the fastest average among all with that by the same wire without it and the others of its machine;
/// on several threads. All ranks compute equally fast.
std::vector<PeerWorth> worths_of(const std::vector<int>& ranks, const Prediction& average, const StepModel& model,
                                 const RankNetwork& network, const Watch& watch = {});

}  // namespace ringlet::prediction
