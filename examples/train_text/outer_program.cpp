#include "outer_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "checkpoints.hpp"
#include "counted.hpp"
#include "generate.hpp"
#include "loss_log.hpp"
#include "outer_training.hpp"
#include "output.hpp"
#include "print.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace train_text {
namespace {

constexpr const char* kLogHashes = "--log-hashes";

/// What rank 0 prints, and the logs.
class OuterReporter {
 public:
  OuterReporter(const Options& options, const Corpus& corpus, const ringlet::Group& group, bool joins)
      : options_(options),
        out_(options.json ? stderr : stdout),
        speaks_(group.rank() == 0),
        hash_file_(own_file(options.log_hashes, group.rank(), group.epoch(), arrival_of(joins))),
        loss_log_(options.log_losses, steps_between_averages(options)) {
    report_.ranks = group.size();
    report_.unigram_entropy = unigram_entropy(corpus.text());
    report_.mode = "outer";
    if (speaks_) loss_log_.begin(options.resume);
    // It is written at the end alone; a folder that is missing is better told now.
    if (!options.log_hashes.empty()) LogFile().open(hash_file_, kLogHashes, true);
  }

  void begin(OuterTraining& training, const ringlet::Group& group, std::size_t text_bytes) {
    began_ = Clock::now();
    if (!speaks_) return;
    const int between = steps_between_averages(options_);
    print(out_, "{} parameters, {} bytes of text, {}, {} of {} bytes per step, an average every {}\n", training.model().parameter_count(),
          text_bytes, counted(report_.ranks, "rank"), counted(options_.batch, "sequence"), options_.shape.context,
          between == 1 ? "step" : counted(between, "step"));
    if (group.elastic()) print(out_, "{}\n", how_to_join(group.door(), "the same options and text"));
    report_.first_validation_loss = training.validate();
    began_ = steps_since_ = Clock::now();
  }

  void took_step(const OuterTraining& training, const ringlet::InnerStep& step, double loss) {
    // A rank that was left out and has joined again is not told that it is another one now.
    if (speaks_ && step.rank != 0) stop_speaking();
    const int number = static_cast<int>(step.number);
    loss_log_.add(number, loss);
    if (!speaks_) return;
    if (!progress_) progress_.emplace(out_, number, options_.steps, varies() ? 0 : tokens_of(options_.batch), steps_since_);
    progress_->update(number + 1, loss, waiting_share(training));
  }

  /// Where rank 0 was lost, the next one is rank 0 now.
  void changed(const ringlet::MembershipChange& change) {
    report_.ranks = change.world.size();
    const bool spoke = std::exchange(speaks_, change.world.rank() == 0);
    if (!speaks_) return;
    const int step = static_cast<int>(change.step) * steps_between_averages(options_);
    if (!spoke) loss_log_.take_over(step);
    progress_.reset();
    steps_since_ = Clock::now();
    const int before = change.world.size() + static_cast<int>(change.lost.size());
    const double pause = std::chrono::duration<double>(change.pause).count();
    print(out_, "{}\n",
          change_text(step, change.world.size(), change.joined, before, pause, change.joined > 0 ? std::string() : change.cause.text()));
  }

  /// Returns whether the logs have all that they should.
  bool end(OuterTraining& training) {
    report_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    report_.ranks = training.world().size();
    report_.steps = training.first_step() < 0 ? 0 : options_.steps - training.first_step();
    // Slower ranks have left steps out; what ranks that are lost by now have computed is not known then.
    const double samples = varies() ? training.samples() : static_cast<double>(report_.steps) * options_.batch;
    report_.tokens_per_second = tokens_of(samples) / report_.seconds;
    report_.communication_share = waiting_share(training);
    report_.averages = training.averages();
    report_.parameter_hash = training.parameter_hash();
    report_.parameter_bytes_per_rank = training.replica().parameter_bytes() + training.outer_bytes();
    report_.optimizer_bytes_per_rank = training.replica().optimizer_bytes();
    const bool logs_are_whole = end_logs();
    if (training.world().rank() != 0) return logs_are_whole;
    report_.last_validation_loss = training.validate();
    const std::string sample =
        options_.sample_bytes > 0 ? generate(training.model(), training.replica(), "\n", {.bytes = options_.sample_bytes}) : std::string();
    print_report(report_, options_.json, sample);
    return logs_are_whole;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double tokens_of(double samples) const { return samples * options_.shape.context; }
  /// Whether ranks take as many steps as their speed allows.
  bool varies() const { return options_.shares == Shares::measured; }

  double waiting_share(const OuterTraining& training) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return seconds > 0 ? std::max(1 - training.computing_seconds() / seconds, 0.0) : 0.0;
  }

  void stop_speaking() {
    speaks_ = false;
    progress_.reset();
    loss_log_.stop();
  }

  bool end_logs() {
    loss_log_.close();
    LogFile hash_log;
    if (!options_.log_hashes.empty()) {
      hash_log.open_late(hash_file_, kLogHashes, options_.resume);
      hash_log.write(fmt::format("{} {}\n", options_.steps, in_hexadecimal(report_.parameter_hash)));
      hash_log.close();
    }
    return !loss_log_.has_failed() && !hash_log.has_failed();
  }

  const Options& options_;
  std::FILE* out_;
  bool speaks_;
  std::filesystem::path hash_file_;
  LossLog loss_log_;
  Report report_;
  std::optional<Progress> progress_;
  Clock::time_point began_, steps_since_;
};

}  // namespace

bool run_outer(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins) {
  OuterReporter reporter(options, corpus, group, joins);
  OuterTraining training(options, corpus, group, joins, [&](const ringlet::MembershipChange& change) { reporter.changed(change); });
  reporter.begin(training, std::exchange(group, ringlet::Group()), corpus.text().size());
  training.run([&](const ringlet::InnerStep& step, double loss) { reporter.took_step(training, step, loss); });
  const bool logs_are_whole = reporter.end(training);
  await_report(training.world());
  return logs_are_whole;
}

}  // namespace train_text
