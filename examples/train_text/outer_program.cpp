#include "outer_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "generate.hpp"
#include "input_error.hpp"
#include "outer_training.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace train_text {
namespace {

/// What rank 0 prints, and the logs.
class OuterReporter {
 public:
  OuterReporter(const Options& options, const Corpus& corpus, const ringlet::Group& group)
      : options_(options), out_(options.json ? stderr : stdout), speaks_(group.rank() == 0), rank_(group.rank()) {
    report_.ranks = group.size();
    report_.unigram_entropy = unigram_entropy(corpus.text());
    report_.mode = "outer";
    if (speaks_) open_loss_log(options.resume);
  }

  void begin(OuterTraining& training, const ringlet::Group& group, std::size_t text_bytes) {
    began_ = Clock::now();
    if (!speaks_) return;
    fmt::print(out_, "{} parameters, {} bytes of text, {} ranks, {} sequences of {} bytes per step, an average every {} steps\n",
               training.model().parameter_count(), text_bytes, report_.ranks, options_.batch, options_.shape.context,
               steps_between_averages(options_));
    if (group.elastic())
      fmt::print(out_, "other processes with the same token, options and text join with RINGLET_JOIN={}\n", group.door());
    std::fflush(out_);
    report_.first_validation_loss = training.validate();
    began_ = Clock::now();
  }

  void took_step(const OuterTraining& training, int step, double loss) {
    if (!speaks_) return;
    if (loss_log_.is_open()) loss_log_ << fmt::format("{} {}\n", step, loss) << std::flush;
    if (!progress_) progress_.emplace(out_, training.first_step(), options_.steps, tokens_per_step());
    progress_->update(step + 1, loss, waiting_share(training));
  }

  /// Where rank 0 was lost, the next one is rank 0 now.
  void changed(const ringlet::MembershipChange& change) {
    report_.ranks = change.world.size();
    rank_ = change.world.rank();
    const bool spoke = std::exchange(speaks_, rank_ == 0);
    if (!speaks_) return;
    if (!spoke) open_loss_log(true);
    progress_.reset();
    const int step = static_cast<int>(change.step) * steps_between_averages(options_);
    const int before = change.world.size() + static_cast<int>(change.lost.size());
    const double pause = std::chrono::duration<double>(change.pause).count();
    fmt::print(
        out_, "{}\n",
        change_text(step, change.world.size(), change.joined, before, pause, change.joined > 0 ? std::string() : change.cause.text()));
    std::fflush(out_);
  }

  void end(OuterTraining& training) {
    report_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    report_.ranks = training.world().size();
    report_.steps = training.first_step() < 0 ? 0 : options_.steps - training.first_step();
    report_.tokens_per_second = report_.steps * tokens_per_step() / report_.seconds;
    report_.communication_share = waiting_share(training);
    report_.averages = training.averages();
    report_.parameter_hash = training.parameter_hash();
    report_.parameter_bytes_per_rank = training.replica().parameter_bytes() + training.outer_bytes();
    report_.optimizer_bytes_per_rank = training.replica().optimizer_bytes();
    log_hash();
    if (training.world().rank() != 0) return;
    report_.last_validation_loss = training.validate();
    const std::string sample =
        options_.sample_bytes > 0 ? generate(training.model(), training.replica(), "\n", {.bytes = options_.sample_bytes}) : std::string();
    print_report(report_, options_.json, sample);
  }

 private:
  using Clock = std::chrono::steady_clock;

  double tokens_per_step() const { return static_cast<double>(options_.batch) * options_.shape.context; }

  double waiting_share(const OuterTraining& training) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    return seconds > 0 ? std::max(1 - training.computing_seconds() / seconds, 0.0) : 0.0;
  }

  void open_loss_log(bool appends) {
    if (!loss_log_.is_open()) loss_log_ = open_log(options_.log_losses, "--log-losses", appends);
  }

  void log_hash() const {
    if (options_.log_hashes.empty()) return;
    std::ofstream log = open_log(fmt::format("{}.{}", options_.log_hashes.string(), rank_), "--log-hashes", options_.resume);
    log << options_.steps << ' ' << in_hexadecimal(report_.parameter_hash) << '\n';
    if (!log.flush()) throw InputError(fmt::format("cannot write to {}.{}", options_.log_hashes.string(), rank_));
  }

  const Options& options_;
  std::FILE* out_;
  bool speaks_;
  int rank_;
  Report report_;
  std::ofstream loss_log_;
  std::optional<Progress> progress_;
  Clock::time_point began_;
};

}  // namespace

void run_outer(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins) {
  OuterReporter reporter(options, corpus, group);
  OuterTraining training(options, corpus, group, joins, [&](const ringlet::MembershipChange& change) { reporter.changed(change); });
  reporter.begin(training, std::exchange(group, ringlet::Group()), corpus.text().size());
  training.run([&](int step, double loss) { reporter.took_step(training, step, loss); });
  reporter.end(training);
}

}  // namespace train_text
