#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace train_text {

/// What a run came to. Losses and entropy are in nats per byte.
struct Report {
  int ranks = 0;
  int steps = 0;  // that this run took
  double seconds = 0;
  double tokens_per_second = 0;
  double communication_share = 0;
  double unigram_entropy = 0;
  double first_validation_loss = 0;
  double last_validation_loss = 0;
  std::uint64_t parameter_hash = 0;
  std::string_view mode{};  // its name, which outlives the report
  // What rank 0 keeps; no rank keeps more.
  std::size_t parameter_bytes_per_rank = 0;
  std::size_t optimizer_bytes_per_rank = 0;
};

/// A few lines for a person.
std::string summary(const Report& report, std::string_view sample);

/// One line of JSON.
std::string json_line(const Report& report);

}  // namespace train_text
