#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <ringlet/ringlet.hpp>

#include "corpus.hpp"
#include "input_error.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "trainer.hpp"

namespace train_text {
namespace {

constexpr int kSuccess = 0;
constexpr int kFailure = 1;
constexpr int kWrongInput = 2;

std::ofstream open_loss_log(const Options& options) {
  std::ofstream log;
  if (options.log_losses.empty()) return log;
  log.open(options.log_losses, options.resume ? std::ios::app : std::ios::out);
  if (!log) throw InputError(fmt::format("cannot write {}: choose another file for --log-losses", options.log_losses.string()));
  return log;
}

// Empty if they agree.
std::string disagreement(const std::vector<std::uint64_t>& hashes) {
  if (std::ranges::count(hashes, hashes[0]) == static_cast<std::ptrdiff_t>(hashes.size())) return {};
  std::string text = "the ranks ended with different parameters:";
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) text += fmt::format("\n  rank {}: {:016x}", rank, hashes[rank]);
  return text;
}

int run(const Options& options) {
  const Corpus corpus(load_text(options.data), options.shape.context);
  ringlet::Group group = ringlet::init();
  const bool reports = group.rank() == 0;
  std::FILE* out = options.json ? stderr : stdout;

  Trainer trainer(options, corpus, group);
  if (reports) {
    fmt::print(out, "{} parameters, {} bytes of text, {} rank{}, {} sequences of {} bytes per step\n", trainer.model().parameter_count(),
               corpus.text().size(), group.size(), group.size() == 1 ? "" : "s", options.batch, options.shape.context);
    std::fflush(out);
  }

  const int first_step = trainer.begin();
  std::ofstream loss_log = reports ? open_loss_log(options) : std::ofstream();
  const int steps = options.steps - first_step;
  if (reports && options.resume) fmt::print(out, "{} steps are done; {} are left\n", first_step, steps);

  Report report{.ranks = group.size(), .steps = steps, .unigram_entropy = unigram_entropy(corpus.text())};
  report.mode = name_of(options.mode);
  report.parameter_bytes_per_rank = trainer.placement().parameter_bytes();
  report.optimizer_bytes_per_rank = trainer.placement().optimizer_bytes();
  report.first_validation_loss = trainer.validation_loss();
  const double tokens_per_step = static_cast<double>(options.batch) * options.shape.context;
  Progress progress(out, first_step, options.steps, tokens_per_step);
  for (int step = first_step; step < options.steps; ++step) {
    const double loss = trainer.step(step);
    if (!std::isfinite(loss)) throw std::runtime_error(fmt::format("the loss of step {} is {}: try a smaller --learning-rate", step, loss));
    if (loss_log.is_open()) loss_log << fmt::format("{} {}\n", step, loss);
    if (reports) progress.update(step + 1, loss, trainer.communication_share());
    trainer.save_if_due(step + 1);
  }
  report.last_validation_loss = trainer.validation_loss();
  report.seconds = trainer.training_seconds();
  if (steps > 0) report.tokens_per_second = steps * tokens_per_step / report.seconds;
  report.communication_share = trainer.mean_communication_share();

  const std::vector<std::uint64_t> hashes = trainer.parameter_hashes();
  if (const std::string text = disagreement(hashes); !text.empty()) throw std::runtime_error(text);
  report.parameter_hash = hashes[0];
  if (options.json) {
    if (reports) fmt::print("{}\n", json_line(report));
    return kSuccess;
  }
  const std::string sample = trainer.sample("\n");
  if (reports) fmt::print("{}\n", summary(report, sample));
  return kSuccess;
}

}  // namespace
}  // namespace train_text

int main(int argc, char** argv) {
  using namespace train_text;
  try {
    const std::optional<Options> options = parse_options(argc, argv);
    return options ? run(*options) : kSuccess;
  } catch (const InputError& error) {
    fmt::print(stderr, "train_text: {}\n", error.what());
    return kWrongInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_text: {}\n", error.what());
    return kFailure;
  }
}
