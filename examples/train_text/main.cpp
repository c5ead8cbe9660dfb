#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoints.hpp"
#include "corpus.hpp"
#include "counted.hpp"
#include "input_error.hpp"
#include "loss_log.hpp"
#include "options.hpp"
#include "outer_program.hpp"
#include "output.hpp"
#include "print.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "shared_inputs.hpp"
#include "text_files.hpp"
#include "trainer.hpp"

namespace train_text {
namespace {

constexpr int kSuccess = 0;
constexpr int kFailure = 1;
constexpr int kWrongInput = 2;

// Rank 0 reads its text before it meets the other ranks, so that a mistyped file name does not make them wait. The environment says which
// rank this is, by the first of these variables that is set. The library looks closer; where it finds this to be rank 0 after all, the text
// is read when they have met.
bool is_first_rank() {
  if (std::getenv("RINGLET_JOIN") != nullptr) return false;
  for (const char* variable :
       {"RINGLET_RANK", "MLX_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX"})
    if (const char* rank = std::getenv(variable)) return std::string_view(rank) == "0";
  return true;
}

/// Ranks that are lost do not end a run, unless the environment says otherwise. Where browsers take part, `ringlet serve` says so: others
/// who start ranks for browsers may have told these where rank 0 is, and not where a door is.
ringlet::InitOptions group_options(const Options& own) {
  const char* guests = std::getenv("RINGLET_GUESTS");
  ringlet::InitOptions options;
  options.trace = own.trace;
  if (std::getenv("RINGLET_ELASTIC") == nullptr && (guests == nullptr || std::string_view(guests) == "0")) options.elastic = true;
  return options;
}

/// What the library refuses before ranks meet, such as a trace that cannot be written, are mistakes of the command line or the environment.
ringlet::Group meet(const Options& own) {
  try {
    return ringlet::init(group_options(own));
  } catch (const ringlet::InvalidArgument& error) {
    throw InputError(error.what());
  }
}

/// Prints rank 0's report of a run, and writes each rank's logs.
class Reporter {
 public:
  Reporter(const Options& options, const Corpus& corpus, const ringlet::Group& group, bool joins)
      : options_(options),
        out_(options.json ? stderr : stdout),
        speaks_(group.rank() == 0),
        joined_(joins),
        loss_log_(options.log_losses, 1) {
    report_.ranks = group.size();
    report_.unigram_entropy = unigram_entropy(corpus.text());
    report_.mode = name_of(options.mode);
    if (speaks_) loss_log_.begin(options.resume);
    if (options.log_hashes.empty()) return;
    const Arrival arrival = arrival_of(joins);
    const bool appends = options.resume || arrival == Arrival::again;
    hash_log_.open(own_file(options.log_hashes, group.rank(), group.epoch(), arrival), "--log-hashes", appends);
  }

  void begin(const Trainer& trainer, std::size_t text_bytes) {
    if (!speaks_) return;
    print(out_, "{} parameters, {} bytes of text, {}, {} of {} bytes per step\n", trainer.model().parameter_count(), text_bytes,
          counted(report_.ranks, "rank"), counted(options_.batch, "sequence"), options_.shape.context);
    if (const std::string door = trainer.group().door(); trainer.group().elastic() && trainer.store().survives_losses())
      print(out_, "{}\n", how_to_join(door, ""));
  }

  void after(Act act, const Trainer& trainer) {
    if (act == Act::beginning) began(trainer);
    if (act == Act::validation_sum) validated(trainer.run().validation_loss());
    if (act == Act::apply) took_step(trainer.run());
    if (act == Act::hashes) compared(trainer.run());
    if (act == Act::regroup) regrouped(trainer);
  }

  /// Returns whether the logs have all that they should.
  bool end(const Trainer& trainer) {
    const Run& run = trainer.run();
    report_.seconds = run.training_seconds();
    if (report_.steps > 0) report_.tokens_per_second = report_.steps * tokens_per_step() / report_.seconds;
    report_.communication_share = run.mean_waiting_share();
    report_.parameter_hash = run.hashes()[0];
    report_.parameter_bytes_per_rank = trainer.store().parameter_bytes();
    report_.optimizer_bytes_per_rank = trainer.store().optimizer_bytes();
    if (speaks_) print_report(report_, options_.json, trainer.sample());
    loss_log_.close();
    hash_log_.close();
    return !loss_log_.has_failed() && !hash_log_.has_failed();
  }

 private:
  double tokens_per_step() const { return static_cast<double>(options_.batch) * options_.shape.context; }

  void began(const Trainer& trainer) {
    steps_done_ = trainer.first_step();
    report_.steps = options_.steps - steps_done_;
    if (!speaks_) return;
    if (options_.resume)
      print(out_, "{} {} done; {} left\n", counted(steps_done_, "step"), steps_done_ == 1 ? "is" : "are",
            report_.steps == 1 ? "1 is" : fmt::format("{} are", report_.steps));
    show_progress();
  }

  void show_progress() { progress_.emplace(out_, steps_done_, options_.steps, tokens_per_step()); }

  /// Where rank 0 was lost, the next one is rank 0 now.
  void regrouped(const Trainer& trainer) {
    const Regrouping& now = trainer.regrouping();
    report_.ranks = now.ranks;
    steps_done_ = std::max(trainer.run().committed(), trainer.first_step());
    report_.steps = options_.steps - trainer.first_step();
    if (now.rejoined)
      print(stderr,
            "train_text: the others had gone on without this rank ({}); after {:.0f} ms it has joined them again as rank {} of {}\n",
            now.cause, now.seconds * 1e3, trainer.group().rank(), now.ranks);
    const bool spoke = std::exchange(speaks_, trainer.group().rank() == 0);
    if (!speaks_) return loss_log_.stop();
    if (!spoke) loss_log_.take_over(steps_done_);
    // The pace before says nothing of what is left.
    show_progress();
    progress_->note(change_text(steps_done_, now.ranks, now.ranks - now.ranks_before, now.ranks_before, now.seconds, now.cause));
    if (!now.rollback.empty()) progress_->note(now.rollback);
    if (now.waits) progress_->note("these are too few (RINGLET_MIN_RANKS), so they wait for others to join");
  }

  void validated(double loss) {
    if (!std::exchange(validated_, true) && !joined_) report_.first_validation_loss = loss;
    report_.last_validation_loss = loss;
  }

  void took_step(const Run& run) {
    ++steps_done_;
    loss_log_.add(steps_done_ - 1, run.loss());
    if (!speaks_) return;
    progress_->update(steps_done_, run.loss(), run.waiting_share());
  }

  void compared(const Run& run) { hash_log_.write(fmt::format("{} {}\n", run.steps_compared(), in_hexadecimal(run.own_hash()))); }

  const Options& options_;
  std::FILE* out_;
  bool speaks_;
  const bool joined_;
  Report report_;
  LossLog loss_log_;
  LogFile hash_log_;
  std::optional<Progress> progress_;
  int steps_done_ = 0;
  bool validated_ = false;
};

int run(Options own) {
  // Those that join get the state of the others.
  if (was_restarted() && std::getenv("RINGLET_JOIN") == nullptr && !own.checkpoint.empty()) own.resume = true;
  std::optional<Bytes> text;
  if (is_first_rank()) text = load_text(own.data);
  ringlet::Group group = meet(own);
  set_guests(own, group.guests());
  // Those who train with few averages go on with these, so a rank that joins them has to know by itself what they have.
  if (own.inner_steps > 0 && std::getenv("RINGLET_JOIN") != nullptr) {
    const SharedInputs inputs = join_inputs(group, own, [&] { return load_text(own.data); });
    return run_outer(inputs.options, inputs.corpus, std::move(group), true) ? kSuccess : kFailure;
  }
  const SharedInputs inputs =
      share_inputs(group, own, [&] { return text ? std::exchange(text, std::nullopt).value() : load_text(own.data); });
  if (!inputs.overruled.empty())
    print(stderr, "train_text: rank 0 decides about the settings; other than was given to rank {}, {}\n", group.rank(), inputs.overruled);

  if (inputs.options.inner_steps > 0) return run_outer(inputs.options, inputs.corpus, std::move(group), false) ? kSuccess : kFailure;
  const bool joins = inputs.running;
  Reporter reporter(inputs.options, inputs.corpus, group, joins);
  Trainer trainer(inputs.options, inputs.corpus, std::move(group), joins);
  if (!joins) reporter.begin(trainer, inputs.corpus.text().size());
  for (Act act = Act::beginning; act != Act::end; reporter.after(act, trainer)) act = trainer.advance();
  const bool logs_are_whole = reporter.end(trainer);
  await_report(trainer.group());
  return logs_are_whole ? kSuccess : kFailure;
}

}  // namespace
}  // namespace train_text

int main(int argc, char** argv) {
  using namespace train_text;
  try {
    std::optional<Options> options = parse_options(argc, argv);
    return options ? run(*std::move(options)) : kSuccess;
  } catch (const InputError& error) {
    print(stderr, "train_text: {}\n", error.what());
    return kWrongInput;
  } catch (const std::exception& error) {
    print(stderr, "train_text: {}\n", error.what());
    return kFailure;
  }
}
