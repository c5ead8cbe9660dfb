#include "trainer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "batches.hpp"
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

ringlet::AverageOptions average_options(const Options& options, int rank, int ranks) {
  if (options.batch < ranks) {
    throw InputError(
        fmt::format("--batch {} leaves some of the {} ranks without a sequence: give at least {}", options.batch, ranks, ranks));
  }
  ringlet::AverageOptions average{.all_reduce_size = options.all_reduce_size, .communication_type = options.communication_type};
  // A rank that saw more sequences counts for more. Where all saw as many, the plain mean says the same.
  if (options.batch % ranks != 0) average.weight = slice_of(options.batch, rank, ranks).count;
  return average;
}

}  // namespace

Trainer::Trainer(const Options& options, const Corpus& corpus, ringlet::Group group)
    : options_(options),
      corpus_(corpus),
      group_(group),
      model_(options.shape, options.seed),
      parameters_(tree_of(model_.parameter_ranges(), model_.parameters())),
      gradients_(tree_of(model_.parameter_ranges(), model_.gradients())),
      optimizer_(make_optimizer(learning_rate_schedule(options.steps, options.learning_rate))),
      averager_(group, average_options(options, group.rank(), group.size())) {
  check_agreement();
  group_.broadcast(model_.parameters(), 0);
}

void Trainer::check_agreement() {
  const auto texts = gather(group_, hash_of(std::as_bytes(corpus_.text())));
  const auto options = gather(group_, hash_of_shared(options_));
  if (const auto others = ranks_unlike_the_first(options); !others.empty()) {
    throw InputError(
        fmt::format("rank 0 and rank {} were started with different options: give all ranks the same", fmt::join(others, ", ")));
  }
  if (const auto others = ranks_unlike_the_first(texts); !others.empty()) {
    throw InputError(
        fmt::format("the text of rank {} is not the text of rank 0 (here: {} bytes, hash {:016x}): give all ranks the same --data",
                    fmt::join(others, ", "), corpus_.text().size(), hash_of(std::as_bytes(corpus_.text()))));
  }
}

double Trainer::step(int step) {
  double loss = 0;
  training_.time([&] { loss = train_on(step); });
  return loss;
}

double Trainer::train_on(int step) {
  const Slice slice = slice_of(options_.batch, group_.rank(), group_.size());
  const Batch batch = training_batch(corpus_, options_.shape.context, options_.seed, static_cast<std::uint64_t>(step), slice);

  // Each sequence has the same number of bytes, so the mean over the batch weighs each rank's mean by its sequences.
  std::vector<double> loss{model_.forward(batch) * slice.count / options_.batch};
  ringlet::Work loss_sum = group_.all_reduce_async(ringlet::ReduceOp::sum, loss, loss, {.stream = kLossStream});

  // The averager sends what the backward pass has finished while the rest is computed.
  model_.backward(batch, [&](std::span<float> gradient) { communication_.time([&] { averager_.add(gradient); }); });
  communication_.time([&] {
    averager_.finish();
    loss_sum.wait();
  });

  ringlet::clip_grad_norm(gradients_, kMaxNorm);
  optimizer_.apply_gradients(gradients_, parameters_);
  return loss[0];
}

double Trainer::validation_loss() {
  const int windows = validation_windows(corpus_, options_.shape.context);
  const Slice slice = slice_of(windows, group_.rank(), group_.size());
  std::vector<double> loss{0};
  if (slice.count > 0) loss[0] = model_.forward(validation_batch(corpus_, options_.shape.context, slice)) * slice.count / windows;
  group_.all_sum(loss);
  return loss[0];
}

std::vector<std::uint64_t> Trainer::parameter_hashes() { return gather(group_, hash_of(std::as_bytes(model_.parameters()))); }

double Trainer::communication_share() const { return training_.seconds() > 0 ? communication_.seconds() / training_.seconds() : 0.0; }

double Trainer::mean_communication_share() {
  std::vector<double> share{communication_share()};
  group_.all_mean(share);
  return share[0];
}

}  // namespace train_text
