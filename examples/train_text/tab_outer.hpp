#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/tree.hpp>
#include <ringlet/wire.hpp>
#include <span>
#include <vector>

#include "hashes.hpp"
#include "inner_steps.hpp"
#include "tab_trainer.hpp"

namespace train_text {

/// The leaves of a tree of f32, which outlives them, as a tab's caller reads them.
struct TabLeaves {
  TabLeaves() = default;
  explicit TabLeaves(const ringlet::Tree& tree);

  std::vector<const char*> names;
  std::vector<float*> values;
  std::vector<std::size_t> counts, axes, extents;
};

/// TrainTextAverage::wire.
std::int32_t number_of(const std::optional<ringlet::Wire>& wire);

/// A tab's part of a run in which ranks train alone between two averages, from the settings to the comparison at the end.
class TabOuter {
 public:
  /// All arguments must outlive it, except `settings`, which is copied.
  TabOuter(const Settings& settings, const Corpus& corpus, Transformer<float>& model, Replica& replica);
  TabOuter(const TabOuter&) = delete;
  TabOuter& operator=(const TabOuter&) = delete;

  const TrainTextOuter& description() const { return description_; }
  void begin_step(std::uint64_t number, int rank, int ranks);
  bool is_in_step() const { return is_in_step_; }
  void compute(int samples) { is_in_step_ = !steps_.work(samples); }
  const std::string& problem() const { return steps_.problem(); }

  /// Hashes the parameters. all_ends() is then to be filled by an all-gather of own_end().
  void end(int ranks);
  const EndOfRank& own_end() const { return own_end_; }
  std::vector<EndOfRank>& all_ends() { return all_ends_; }

  /// Sets those of TrainTextNumber that are known here.
  void set_numbers(std::span<double> numbers) const;

 private:
  const Settings settings_;
  Replica& replica_;
  InnerSteps steps_;
  TabLeaves leaves_;
  TrainTextOuter description_;
  bool is_in_step_ = false;
  std::chrono::steady_clock::time_point began_;
  EndOfRank own_end_;
  std::vector<EndOfRank> all_ends_;
};

}  // namespace train_text
