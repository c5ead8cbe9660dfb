#include "settings.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "counted.hpp"

namespace train_text {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

constexpr std::uint32_t kMagic = 0x54584554;  // "TEXT"
constexpr std::uint32_t kVersion = 4;
constexpr std::uint8_t kNoType = 255;
constexpr std::uint8_t kFirstBlocks = 128;  // a type below is a dtype's number, one from here on a block format's
constexpr std::uint32_t kMaxFolderBytes = 4096;

class RecordWriter {
 public:
  template <class T>
  void operator()(const T& value) {
    std::memcpy(record.data() + end_, &value, sizeof(T));
    end_ += sizeof(T);
  }
  void operator()(const std::optional<ringlet::Wire>& type) {
    std::uint8_t byte = kNoType;
    if (type) byte = static_cast<std::uint8_t>(type->dtype());
    if (type && type->blocks()) byte = kFirstBlocks + static_cast<std::uint8_t>(*type->blocks());
    (*this)(byte);
  }

  Record record{};

 private:
  std::size_t end_ = 0;
};

class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> record) : left_(record) {}
  template <class T>
  void operator()(T& value) {
    std::memcpy(&value, left_.data(), sizeof(T));
    left_ = left_.subspan(sizeof(T));
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    (*this)(byte);
    value = byte != 0;
  }
  void operator()(std::optional<ringlet::Wire>& type) {
    std::uint8_t byte = kNoType;
    (*this)(byte);
    if (byte == kNoType) return type.reset();
    const auto format = static_cast<ringlet::BlockFormat>(byte - kFirstBlocks);
    type = byte >= kFirstBlocks && ringlet::is_valid(format) ? wire_in_blocks(format) : static_cast<ringlet::DType>(byte);
  }

 private:
  std::span<const std::byte> left_;
};

// The record's layout after magic and version. New fields are added at the end and need a new version number.
template <class Visitor, class Value>
void visit_fields(Visitor& visit, Value& announcement) {
  auto& settings = announcement.settings;
  visit(announcement.text_bytes);
  visit(settings.seed);
  visit(settings.learning_rate);
  visit(settings.clip_norm);
  visit(settings.all_reduce_size);
  visit(announcement.folder_bytes);
  visit(settings.shape.layers);
  visit(settings.shape.width);
  visit(settings.shape.heads);
  visit(settings.shape.context);
  visit(settings.steps);
  visit(settings.batch);
  visit(settings.measure_every);
  visit(settings.check_every);
  visit(settings.validation_windows);
  visit(settings.sample_bytes);
  visit(settings.checkpoint_every);
  visit(settings.guests);
  visit(settings.mode);
  visit(settings.shares);
  visit(settings.communication_type);
  visit(announcement.refused);
  visit(settings.saves);
  visit(settings.resume);
  visit(announcement.elastic);
  visit(announcement.running);
  visit(settings.inner_steps);
  visit(settings.fragments);
  visit(settings.overlap);
  visit(settings.outer_learning_rate);
  visit(settings.outer_momentum);
}

std::string text_of(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string out_of(const char* option, Range range, int value) {
  if (value >= range.least && value <= range.most) return {};
  const std::string name(option);
  return value < range.least ? name + " must be at least " + std::to_string(range.least) + ", not " + std::to_string(value)
                             : name + " must be at most " + std::to_string(range.most) + ", not " + std::to_string(value);
}

std::string problem_of_numbers(const Settings& settings) {
  for (const std::string& problem :
       {out_of("--steps", kSteps, settings.steps), out_of("--batch", kSequences, settings.batch),
        out_of("--check-every", kStepsOrNone, settings.check_every), out_of("--checkpoint-every", kSteps, settings.checkpoint_every),
        out_of("the number of steps between two measurements", kSteps, settings.measure_every),
        out_of("the number of windows to evaluate", kSequences, settings.validation_windows),
        out_of("the number of bytes to write", kStepsOrNone, settings.sample_bytes),
        out_of("--inner-steps", kStepsOrNone, settings.inner_steps), out_of("--fragments", kSteps, settings.fragments),
        out_of("--overlap", kStepsOrNone, settings.overlap), out_of("the number of browsers", {0, kSequences.most}, settings.guests)}) {
    if (!problem.empty()) return problem;
  }
  if (settings.all_reduce_size < 0)
    return "--all-reduce-size must be 0 (each part by itself) or more, not " + std::to_string(settings.all_reduce_size);
  if (!(settings.learning_rate > 0) || !std::isfinite(settings.learning_rate))
    return "--learning-rate must be above 0, not " + text_of(settings.learning_rate);
  if (!(settings.clip_norm >= 0) || !std::isfinite(settings.clip_norm))
    return "--clip-norm must be 0 (no clipping) or more, not " + text_of(settings.clip_norm);
  return {};
}

std::string problem_of_outer(const Settings& settings) {
  if (settings.inner_steps == 0) return {};
  if (settings.mode != Mode::data_parallel)
    return "--inner-steps is for data-parallel training: leave out --" + std::string(name_of(settings.mode));
  if (settings.inner_steps % settings.fragments != 0)
    return "--fragments must divide --inner-steps, but " + std::to_string(settings.fragments) + " does not divide " +
           std::to_string(settings.inner_steps);
  const int between = steps_between_averages(settings);
  if (settings.steps % between != 0)
    return "--steps must be a multiple of the " + counted(between, "step") + " between two averages, not " + std::to_string(settings.steps);
  if (settings.saves && settings.checkpoint_every % between != 0)
    return "--checkpoint-every must be a multiple of the " + counted(between, "step") + " between two averages, not " +
           std::to_string(settings.checkpoint_every);
  if (settings.overlap >= between)
    return "--overlap must be below the " + counted(between, "step") + " between two averages, not " + std::to_string(settings.overlap);
  if (!(settings.outer_learning_rate > 0) || !std::isfinite(settings.outer_learning_rate))
    return "--outer-lr must be above 0, not " + text_of(settings.outer_learning_rate);
  // From 1 on no average is ever forgotten.
  if (!(settings.outer_momentum >= 0 && settings.outer_momentum < 1))
    return "--outer-momentum must be at least 0 and below 1, not " + text_of(settings.outer_momentum);
  return {};
}

}  // namespace

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::data_parallel:
      return "data-parallel";
    case Mode::fsdp:
      return "fsdp";
    case Mode::fully_shard:
      break;
  }
  return "fully-shard";
}

ringlet::Wire wire_in_blocks(ringlet::BlockFormat format) { return ringlet::Wire::in_blocks(format, {.feedback = true}); }

std::string_view name_of(Shares shares) { return shares == Shares::even ? "even" : "measured"; }

std::string problem_of(const Settings& settings) {
  if (std::string problem = problem_of_numbers(settings); !problem.empty()) return problem;
  if (std::string problem = problem_of(settings.shape); !problem.empty()) return problem;
  if (std::string problem = problem_of_outer(settings); !problem.empty()) return problem;
  if (settings.guests > 0 && settings.mode != Mode::data_parallel) {
    return std::string(settings.mode == Mode::fsdp ? "--fsdp" : "--fully-shard") +
           " needs native ranks only, but browsers take part: leave it out, or start without browsers";
  }
  return {};
}

Record encode(const Announcement& announcement) {
  RecordWriter writer;
  writer(kMagic);
  writer(kVersion);
  visit_fields(writer, announcement);
  return writer.record;
}

Decoded decode(std::span<const std::byte> record) {
  Decoded decoded;
  const auto unusable = [&](std::string why) {
    decoded.problem = "rank 0 sent settings that cannot be used: " + std::move(why);
    return decoded;
  };
  if (record.size() != kRecordBytes) return unusable("they have " + std::to_string(record.size()) + " bytes");
  RecordReader reader(record);
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  reader(magic);
  reader(version);
  if (magic != kMagic) return unusable("rank 0 runs another program");
  if (version != kVersion) {
    return unusable("they are of version " + std::to_string(version) + ", and this rank knows version " + std::to_string(kVersion) +
                    ": run the same release everywhere");
  }
  Announcement& announcement = decoded.announcement;
  visit_fields(reader, announcement);
  const Settings& settings = announcement.settings;
  if (announcement.text_bytes > kMaxTextBytes) return unusable("the text has " + std::to_string(announcement.text_bytes) + " bytes");
  if (announcement.folder_bytes > kMaxFolderBytes) return unusable("a folder's name is too long");
  if (announcement.refused) return decoded;
  if (settings.mode > Mode::fully_shard || settings.shares > Shares::measured) return unusable("a mode is unknown");
  if (settings.communication_type && !ringlet::is_narrow(settings.communication_type->dtype()))
    return unusable("a type for the network is unknown");
  if (std::string problem = problem_of(settings); !problem.empty()) return unusable(std::move(problem));
  return decoded;
}

}  // namespace train_text
