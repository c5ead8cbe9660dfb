#include "trainer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "batches.hpp"
#include "checkpoints.hpp"
#include "generate.hpp"
#include "input_error.hpp"

namespace train_text {
namespace {

// Not the stream of the gradients: the loss need not wait for them, nor they for it.
constexpr ringlet::Stream kLossStream{1};

std::vector<std::uint64_t> gather(ringlet::Group& group, std::uint64_t value) {
  std::vector<std::uint64_t> mine{value};
  std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(mine, all);
  return all;
}

std::vector<std::size_t> ranks_unlike_the_first(const std::vector<std::uint64_t>& hashes) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[0]) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

Trainer::Trainer(const Options& options, const Corpus& corpus, ringlet::Group group)
    : options_(options),
      corpus_(corpus),
      group_(std::move(group)),
      text_hash_(hash_of(std::as_bytes(corpus.text()))),
      model_(options.shape, options.seed) {
  if (options.batch < group_.size()) {
    throw InputError(fmt::format("--batch {} leaves some of the {} ranks without a sequence: give at least {}", options.batch,
                                 group_.size(), group_.size()));
  }
  check_agreement();
  placement_ = make_placement(options, model_, group_);
}

void Trainer::check_agreement() {
  const auto texts = gather(group_, text_hash_);
  const auto options = gather(group_, hash_of_shared(options_));
  if (const auto others = ranks_unlike_the_first(options); !others.empty()) {
    throw InputError(
        fmt::format("rank 0 and rank {} were started with different options: give all ranks the same", fmt::join(others, ", ")));
  }
  if (const auto others = ranks_unlike_the_first(texts); !others.empty()) {
    throw InputError(
        fmt::format("the text of rank {} is not the text of rank 0 (here: {} bytes, hash {:016x}): give all ranks the same --data",
                    fmt::join(others, ", "), corpus_.text().size(), text_hash_));
  }
}

int Trainer::begin() {
  if (options_.checkpoint.empty()) return 0;
  if (options_.resume) return resume_training(options_, text_hash_, *placement_, group_);
  require_no_checkpoint(options_, group_);
  return 0;
}

void Trainer::save_if_due(int steps_done) {
  if (checkpoint_is_due(options_, steps_done)) save_training(options_, text_hash_, *placement_, group_, steps_done);
}

double Trainer::step(int step) {
  double loss = 0;
  training_.time([&] { loss = train_on(step); });
  return loss;
}

double Trainer::train_on(int step) {
  const Slice slice = slice_of(options_.batch, group_.rank(), group_.size());
  const Batch batch = training_batch(corpus_, options_.shape.context, options_.seed, static_cast<std::uint64_t>(step), slice);
  const double communicated_before = placement_->communication_seconds();

  // Each sequence has the same number of bytes, so the mean over the batch weighs each rank's mean by its sequences.
  std::vector<double> loss{model_.forward(batch, *placement_) * slice.count / options_.batch};
  ringlet::Work loss_sum = group_.all_reduce_async(ringlet::ReduceOp::sum, loss, loss, {.stream = kLossStream});
  model_.backward(batch, *placement_, placement_->gradient_scale());
  placement_->apply_gradients();
  waiting_for_losses_.time([&] { loss_sum.wait(); });

  communication_seconds_ += placement_->communication_seconds() - communicated_before;
  return loss[0];
}

double Trainer::validation_loss() {
  const int windows = validation_windows(corpus_, options_.shape.context);
  const Slice slice = slice_of(windows, group_.rank(), group_.size());
  // A rank without a window runs the model too, with one that does not count: the others may need its shards.
  const Batch batch = validation_batch(corpus_, options_.shape.context, slice.count > 0 ? slice : Slice{0, 1});
  std::vector<double> loss{model_.forward(batch, *placement_) * slice.count / windows};
  group_.all_sum(loss);
  return loss[0];
}

std::vector<std::uint64_t> Trainer::parameter_hashes() { return gather(group_, placement_->parameter_hash()); }

std::string Trainer::sample(std::string_view prompt) { return generate(model_, *placement_, prompt); }

double Trainer::communication_share() const {
  return training_.seconds() > 0 ? (communication_seconds_ + waiting_for_losses_.seconds()) / training_.seconds() : 0.0;
}

double Trainer::mean_communication_share() {
  std::vector<double> share{communication_share()};
  group_.all_mean(share);
  return share[0];
}

}  // namespace train_text
