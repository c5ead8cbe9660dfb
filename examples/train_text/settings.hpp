#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <span>
#include <string>
#include <string_view>

#include "model.hpp"

namespace train_text {

/// Where the parameters and the optimizer's state are kept.
enum class Mode : std::uint8_t {
  data_parallel,  // all of both on every rank
  fsdp,           // all parameters on every rank, the optimizer's state in shards
  fully_shard,    // both in shards
};
/// "data-parallel", "fsdp" or "fully-shard".
std::string_view name_of(Mode mode);

/// How many of a step's sequences each rank takes.
enum class Shares : std::uint8_t {
  even,      // as many as any other
  measured,  // the fewer the slower it is: see shares.hpp
};
/// "even" or "measured".
std::string_view name_of(Shares shares);

/// What all ranks of a run must agree on. Rank 0's count; the others are told.
struct Settings {
  ModelShape shape;
  Mode mode = Mode::data_parallel;
  int steps = 1600;
  int batch = 16;  // sequences of the whole group
  std::uint64_t seed = 1;
  double learning_rate = 6e-3;
  double clip_norm = 1.0;  // 0: gradients are not clipped
  std::int64_t all_reduce_size = 256 << 10;
  std::optional<ringlet::DType> communication_type;
  Shares shares = Shares::even;
  int measure_every = 10;       // steps between two looks at the ranks' speeds, where shares are measured
  int check_every = 100;        // steps between two comparisons of the ranks' parameters; 0: only at the end
  int validation_windows = 96;  // at most so many pieces of the held-out text are evaluated
  int sample_bytes = 240;       // that the trained model writes at the end; 0: none
  bool saves = false;           // whether there are checkpoints
  int checkpoint_every = 100;   // steps, where there are
  bool resume = false;          // from the newest checkpoint
  int guests = 0;               // ranks that are browsers: the last ones
};

/// Empty where a run can be made of these; else one sentence that names the option at fault.
std::string problem_of(const Settings& settings);

/// What rank 0 broadcasts first: the settings, and how long what follows is. Or that there will be no run, and then why.
struct Announcement {
  Settings settings;
  bool refused = false;
  std::uint32_t folder_bytes = 0;  // the folder for checkpoints, as rank 0 names it; comes before the text
  std::uint64_t text_bytes = 0;    // or of the reason
};

/// A longer text is refused: the smallest of the ranks must hold it.
constexpr std::uint64_t kMostTextBytes = 1U << 30;

constexpr std::size_t kRecordBytes = 160;
using Record = std::array<std::byte, kRecordBytes>;

Record encode(const Announcement& announcement);

/// From a record that came over the network. `problem` is empty, or says why no run can be made of it; then nothing else counts.
struct Decoded {
  std::string problem;
  Announcement announcement;
};
Decoded decode(std::span<const std::byte> record);

}  // namespace train_text
