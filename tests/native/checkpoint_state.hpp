#pragma once

#include <filesystem>
#include <memory>
#include <ringlet/ringlet.hpp>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/temporary_directory.hpp"

namespace ringlet::test {

/// A directory for checkpoints, with a subdirectory for each rank.
class ScratchDirectory {
 public:
  std::filesystem::path path() const { return directory_.path(); }
  /// Returns the rank's own subdirectory.
  std::filesystem::path of(int rank) const { return path() / ("disk" + std::to_string(rank)); }

 private:
  TemporaryDirectory directory_;
};

/// A training state: replicated tensors of every dtype (among them a scalar, one without rows and a transposed one), shards, and two slots
/// of an optimizer. Every byte follows from `seed`, the tensor and its place in it; with the seed 0 all bytes are zero.
class TrainingState {
 public:
  TrainingState(int rank, int ranks, unsigned seed, const std::vector<double>& weights = {}, std::int64_t large_rows = 11);

  Checkpoint checkpoint();
  /// Returns the first tensor whose bytes are not those of `seed`; empty if all are right.
  std::string wrong(unsigned seed) const;

 private:
  struct Whole {
    std::string name;
    DType dtype;
    Shape shape;
  };
  Tensor expected(const Whole& whole, unsigned seed) const;
  Tensor shard_of(const Whole& whole, unsigned seed) const;

  int rank_;
  std::vector<Whole> replicated_;
  std::vector<Whole> sharded_;
  std::unique_ptr<ShardLayout> layout_;
  std::vector<Tensor> memory_;
  Tree parameters_;
  Tree shards_;
  Tree slots_;
};

/// Saves the state of `seed` from `ranks` ranks.
void save_state(int ranks, const std::function<std::filesystem::path(int)>& directory_of, std::uint64_t step, unsigned seed,
                const std::vector<double>& weights = {}, int keep = 2);
/// Loads into `ranks` ranks, checks every byte against `seed`, and returns the step.
std::optional<std::uint64_t> load_state(int ranks, const std::function<std::filesystem::path(int)>& directory_of, unsigned seed,
                                        const std::vector<double>& weights = {}, std::optional<std::uint64_t> step = {});
/// Returns what `latest_checkpoint` says on all ranks.
std::optional<std::uint64_t> latest_of(int ranks, const std::function<std::filesystem::path(int)>& directory_of);
/// Loads, which must fail with the same `IoError` on every rank and leave the tensors and the group as they were. Returns the error's text.
std::string load_error(int ranks, const std::function<std::filesystem::path(int)>& directory_of, std::optional<std::uint64_t> step = {});

}  // namespace ringlet::test
