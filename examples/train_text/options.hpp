#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ringlet/dtype.hpp>

#include "model.hpp"

namespace train_text {

/// What the user chose. All but the last three must be the same on every rank.
struct Options {
  ModelShape shape;
  int steps = 1600;
  int batch = 16;  // sequences of the whole group
  std::uint64_t seed = 1;
  double learning_rate = 6e-3;
  std::int64_t all_reduce_size = 256 << 10;
  std::optional<ringlet::DType> communication_type;
  std::filesystem::path data;
  bool json = false;
  std::filesystem::path log_losses;
};

/// Reads the command line. Empty where only help was asked for, which has been printed then. Throws `InputError` for what makes no sense.
std::optional<Options> parse_options(int argc, char** argv);

/// Equal for ranks whose options let them train together.
std::uint64_t hash_of_shared(const Options& options);

}  // namespace train_text
