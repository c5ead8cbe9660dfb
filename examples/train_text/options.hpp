#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ringlet/dtype.hpp>
#include <string_view>

#include "model.hpp"

namespace train_text {

/// Where the parameters and the optimizer's state are kept.
enum class Mode {
  data_parallel,  // all of both on every rank
  fsdp,           // all parameters on every rank, the optimizer's state in shards
  fully_shard,    // both in shards
};
/// "data-parallel", "fsdp" or "fully-shard".
std::string_view name_of(Mode mode);

/// What the user chose. All but the last three must be the same on every rank.
struct Options {
  ModelShape shape;
  Mode mode = Mode::data_parallel;
  int steps = 1600;
  int batch = 16;  // sequences of the whole group
  std::uint64_t seed = 1;
  double learning_rate = 6e-3;
  double clip_norm = 1.0;  // 0: gradients are not clipped
  std::int64_t all_reduce_size = 256 << 10;
  std::optional<ringlet::DType> communication_type;
  bool json = false;
  int checkpoint_every = 100;  // steps; where there is a folder for checkpoints
  bool resume = false;
  std::filesystem::path checkpoint;  // the folder; empty: none. Given to all ranks or to none
  std::filesystem::path data;
  std::filesystem::path log_losses;
};

/// Reads the command line. Empty where only help was asked for, which has been printed then. Throws `InputError` for what makes no sense.
std::optional<Options> parse_options(int argc, char** argv);

/// Equal for ranks whose options let them train together.
std::uint64_t hash_of_shared(const Options& options);

}  // namespace train_text
