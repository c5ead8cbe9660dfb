#include "data_parallel.hpp"

#include "batches.hpp"
#include "training.hpp"

namespace train_text {
namespace {

ringlet::AverageOptions average_options(const Options& options, const ringlet::Group& group) {
  ringlet::AverageOptions average{.all_reduce_size = options.all_reduce_size, .communication_type = options.communication_type};
  // A rank that saw more sequences counts for more. Where all saw as many, the plain mean says the same.
  if (options.batch % group.size() != 0) average.weight = slice_of(options.batch, group.rank(), group.size()).count;
  return average;
}

}  // namespace

DataParallel::DataParallel(const Options& options, Transformer<float>& model, ringlet::Group group)
    : Placement(options),
      memory_(model.modules()),
      parameters_(tree_of(model.modules(), memory_.values())),
      gradients_(tree_of(model.modules(), memory_.gradients())),
      averager_(group, average_options(options, group)) {
  group.broadcast(memory_.values(), 0);
  optimizer_.init(parameters_);
}

void DataParallel::gradients_ready(std::span<float> gradients) {
  communication_.time([&] { averager_.add(gradients); });
}

void DataParallel::apply_gradients() {
  communication_.time([&] { averager_.finish(); });
  if (max_norm_) ringlet::clip_grad_norm(gradients_, *max_norm_);
  optimizer_.apply_gradients(gradients_, parameters_);
}

void DataParallel::add_to(ringlet::Checkpoint& checkpoint) {
  checkpoint.add("parameters", parameters_).add("optimizer", optimizer_.state());
}

std::uint64_t DataParallel::parameter_hash() { return hash_of(std::as_bytes(memory_.values())); }

}  // namespace train_text
