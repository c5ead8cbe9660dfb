#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace train_text {

/// The result of a run. Losses and entropy are in nats per byte.
struct Report {
  int ranks = 0;
  int steps = 0;  // number of steps in this run
  double seconds = 0;
  double tokens_per_second = 0;
  double communication_share = 0;
  double unigram_entropy = 0;
  std::optional<double> first_validation_loss{};  // unknown to a rank that has joined later
  double last_validation_loss = 0;
  std::uint64_t parameter_hash = 0;
  std::optional<std::uint64_t> averages{};  // of parameters, where ranks train alone between these
  std::string_view mode{};                  // name of the mode; the memory outlives the report
  // The memory that rank 0 uses. No rank uses more.
  std::size_t parameter_bytes_per_rank = 0;
  std::size_t optimizer_bytes_per_rank = 0;
};

/// Returns a few lines for people.
std::string summary(const Report& report, std::string_view sample);

/// Returns one line of JSON.
std::string json_line(const Report& report);

/// How other processes join the ranks whose door is `door`; they `have` what these have, such as "the same text". It depends on where the
/// environment has the group's token.
std::string how_to_join(std::string_view door, std::string_view have);

}  // namespace train_text
