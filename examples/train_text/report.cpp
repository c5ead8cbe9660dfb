#include "report.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "counted.hpp"

namespace train_text {
namespace {

std::string indented_and_printable(std::string_view text) {
  std::string out = "    ";
  for (const char c : text) {
    const bool printable = (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
    out += printable ? c : '?';
    if (c == '\n') out += "    ";
  }
  return out;
}

std::string readable_bytes(std::size_t bytes) {
  const double kibibytes = static_cast<double>(bytes) / 1024;
  return kibibytes < 1024 ? fmt::format("{:.1f} KiB", kibibytes) : fmt::format("{:.1f} MiB", kibibytes / 1024);
}

}  // namespace

std::string summary(const Report& report, std::string_view sample) {
  const std::string ranks = counted(report.ranks, "rank");
  std::string text = fmt::format("\n{}, {} in {:.1f} s: {:.0f} tokens/s, {:.1f} % of the time waiting for communication\n\n", ranks,
                                 counted(report.steps, "step"), report.seconds, report.tokens_per_second, 100 * report.communication_share);
  text += fmt::format("  mode                             {}: {} of parameters and {} of optimizer state per rank\n", report.mode,
                      readable_bytes(report.parameter_bytes_per_rank), readable_bytes(report.optimizer_bytes_per_rank));
  if (report.averages) text += fmt::format("  averages of the parameters       {}\n", *report.averages);
  text += fmt::format("  unigram entropy of the text      {:.3f} nats per byte\n", report.unigram_entropy);
  if (report.first_validation_loss) text += fmt::format("  held-out loss before training    {:.3f}\n", *report.first_validation_loss);
  text += fmt::format("  held-out loss after training     {:.3f}, {:.0f} % of the entropy\n", report.last_validation_loss,
                      100 * report.last_validation_loss / report.unigram_entropy);
  text += fmt::format("  hash of the parameters           {:016x}{}\n\n", report.parameter_hash,
                      report.ranks > 1 ? ", equal on all " + ranks : "");
  return text + fmt::format("What the model writes now:\n\n{}\n", indented_and_printable(sample));
}

std::string json_line(const Report& report) {
  nlohmann::ordered_json line{
      {"ranks", report.ranks},
      {"steps", report.steps},
      {"seconds", report.seconds},
      {"tokens_per_s", report.tokens_per_second},
      {"unigram_entropy", report.unigram_entropy},
      {"val_loss_first", report.first_validation_loss ? nlohmann::ordered_json(*report.first_validation_loss) : nlohmann::ordered_json()},
      {"val_loss_last", report.last_validation_loss},
      {"parameter_hash", fmt::format("{:016x}", report.parameter_hash)},
      {"communication_share", report.communication_share},
      {"mode", report.mode},
      {"parameter_bytes_per_rank", report.parameter_bytes_per_rank},
      {"optimizer_bytes_per_rank", report.optimizer_bytes_per_rank}};
  if (report.averages) line["averages"] = *report.averages;
  return line.dump();
}

std::string how_to_join(std::string_view door, std::string_view have) {
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
  };
  std::string text = fmt::format("other processes{}{} join with RINGLET_JOIN={}", have.empty() ? "" : " with ", have, door);
  if (!is_set("RINGLET_TOKEN")) return text + (is_set("RINGLET_TOKEN_FILE") ? " and the same token, which is in RINGLET_TOKEN_FILE" : "");
  text += " and the same RINGLET_TOKEN";
  return is_set("RINGLET_RANK") ? text + ", if you gave the job one; nobody sees one that its launcher has made" : text;
}

}  // namespace train_text
