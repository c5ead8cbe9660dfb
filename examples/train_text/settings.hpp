#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ringlet/wire.hpp>
#include <span>
#include <string>
#include <string_view>

#include "model.hpp"

namespace train_text {

/// Decides where the parameters and the optimizer's state are kept.
enum class Mode : std::uint8_t {
  data_parallel,  // all of both on every rank
  fsdp,           // all parameters on every rank, the optimizer's state in shards
  fully_shard,    // both in shards
};
/// Returns "data-parallel", "fsdp" or "fully-shard".
std::string_view name_of(Mode mode);

/// Decides how many of a step's sequences each rank takes.
enum class Shares : std::uint8_t {
  even,      // the same number on every rank
  measured,  // fewer on slower ranks, see shares.hpp
};
/// Returns "even" or "measured".
std::string_view name_of(Shares shares);

/// The settings that all ranks of a run must agree on. Rank 0 broadcasts its own, and all ranks use them.
struct Settings {
  ModelShape shape;
  Mode mode = Mode::data_parallel;
  int steps = 1600;
  int batch = 16;  // sequences of the whole group
  std::uint64_t seed = 1;
  double learning_rate = 6e-3;
  double clip_norm = 1.0;  // 0 leaves the gradients unclipped
  std::int64_t all_reduce_size = 256 << 10;
  std::optional<ringlet::Wire> communication_type;  // blocks have error feedback
  Shares shares = Shares::even;
  int measure_every = 10;       // steps between two measurements of the ranks' speeds, if shares are measured
  int check_every = 100;        // steps between two comparisons of the ranks' parameters; 0 compares only at the end
  int validation_windows = 96;  // the largest number of windows of the held-out text that are evaluated
  int sample_bytes = 240;       // length of the text that the trained model writes at the end; 0 for none
  bool saves = false;           // whether checkpoints are written
  int checkpoint_every = 100;   // steps between two checkpoints, if they are written
  bool resume = false;          // whether to start from the newest checkpoint
  int inner_steps = 0;          // steps that a rank takes alone between two averages; 0: gradients are averaged in each step
  int fragments = 1;            // parts in which parameters are averaged then, one after the other
  int overlap = 0;              // steps that go on while a part is averaged
  double outer_learning_rate = 0.7;
  double outer_momentum = 0.5;
  int guests = 0;  // number of ranks that are browsers; they are the last ranks
};

/// The wire of gradients that are sent in blocks: with error feedback, and the parts of the model that are small as bf16.
ringlet::Wire wire_in_blocks(ringlet::BlockFormat format);

/// What the numbers of a run may be. The limits are far above any use of this program, and below any overflow.
struct Range {
  int least = 0;
  int most = 1'000'000'000;
};
constexpr Range kSteps{1};
constexpr Range kStepsOrNone{0};
constexpr Range kSequences{1, 1 << 20};
constexpr Range kSizes{1, kMaxSize};

/// What `learning_rate` is where a rank trains alone and nothing is said: the few sequences of one rank make a noisier step than all do.
constexpr double kInnerLearningRate = 3e-3;

/// Steps between two averages of parameters, where `inner_steps` is not 0.
inline int steps_between_averages(const Settings& settings) { return settings.inner_steps / settings.fragments; }

/// Returns an empty string if a run can have these settings, else one sentence that names the wrong option.
std::string problem_of(const Settings& settings);

/// The record that rank 0 broadcasts first. It has the settings and the length of the bytes that follow, or says that there will be no run.
struct Announcement {
  Settings settings;
  bool refused = false;
  bool elastic = false;            // whether the group goes on without ranks that are lost
  bool running = false;            // whether the others have begun already, and give what they have to those that have joined
  std::uint32_t folder_bytes = 0;  // length of rank 0's name of the folder for checkpoints, which precedes the text
  std::uint64_t text_bytes = 0;    // length of the text, or of the reason if the run is refused
};

/// A longer text is refused, because the rank with the least memory must hold it too.
constexpr std::uint64_t kMaxTextBytes = 1U << 30;

constexpr std::size_t kRecordBytes = 160;
using Record = std::array<std::byte, kRecordBytes>;

Record encode(const Announcement& announcement);

/// The result of decoding a record received over the network. If `problem` is not empty, it says why, and the other members have no
/// meaning.
struct Decoded {
  std::string problem;
  Announcement announcement;
};
Decoded decode(std::span<const std::byte> record);

}  // namespace train_text
