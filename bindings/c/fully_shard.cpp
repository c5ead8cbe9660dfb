#include <ringlet/c/fsdp.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

struct ringlet_fully_shard {
  ringlet::FullyShard value;
  ExportedTree parameters{}, gradients{};
};

struct ringlet_unsharded {
  ringlet::FullyShard::Unsharded value;
  ExportedTree parameters{value.parameters()};
};

namespace {

ringlet_fully_shard_options sharding_defaults() {
  return {.struct_size = sizeof(ringlet_fully_shard_options),
          .shard_weights = nullptr,
          .shard_weight_count = 0,
          .compute_dtype = RINGLET_NO_DTYPE,
          .reduce_dtype = RINGLET_NO_DTYPE,
          .prefetch = ringlet::FullyShardOptions().prefetch,
          .stream = 0,
          .feedback = ringlet::BlockOptions().feedback,
          .least_elements = static_cast<int64_t>(ringlet::BlockOptions().least_elements)};
}

ringlet::FullyShardOptions sharding_options(const ringlet_fully_shard_options* given) {
  const auto read = options_or(given, sharding_defaults());
  const auto weights = array_of(read.shard_weights, read.shard_weight_count, "shard_weights");
  ringlet::FullyShardOptions options;
  options.compute_dtype = optional_dtype(read.compute_dtype, "compute_dtype");
  options.reduce_dtype = optional_wire(read.reduce_dtype, "reduce_dtype", read.feedback, read.least_elements);
  options.shard_weights.assign(weights.begin(), weights.end());
  options.prefetch = read.prefetch;
  options.stream = stream_of(read.stream);
  return options;
}

/// Writes the full parameters that `gather` returns to the caller's variables.
template <class Gather>
void give_unsharded(ringlet_unsharded** unsharded, const ringlet_named_tensor** parameters, size_t* count, Gather gather) {
  *required(unsharded, "unsharded") = nullptr;
  required(parameters, "parameters");
  required(count, "count");
  give(unsharded, "unsharded", gather);
  (*unsharded)->parameters.give(parameters, count);
}

}  // namespace

int32_t ringlet_fully_shard_options_init(ringlet_fully_shard_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, sharding_defaults());
}

int32_t ringlet_fully_shard_create(ringlet_group* group, const ringlet_fully_shard_options* options, ringlet_fully_shard** sharded) {
  return guarded(__func__, [&] {
    give(sharded, "sharded", [&] { return ringlet::FullyShard(value_of(group, "group"), sharding_options(options)); });
  });
}
void ringlet_fully_shard_free(ringlet_fully_shard* sharded) { delete sharded; }

int32_t ringlet_fully_shard_add(ringlet_fully_shard* sharded, const char* name, const ringlet_named_tensor* parameters, size_t count,
                                size_t* module) {
  return guarded(__func__, [&] {
    const size_t number = value_of(sharded, "sharded").add(required(name, "name"), tree_of(parameters, count, "parameters"));
    if (module != nullptr) *module = number;
  });
}

int32_t ringlet_fully_shard_forward(ringlet_fully_shard* sharded, size_t module, ringlet_unsharded** unsharded,
                                    const ringlet_named_tensor** parameters, size_t* count) {
  return guarded(__func__,
                 [&] { give_unsharded(unsharded, parameters, count, [&] { return value_of(sharded, "sharded").forward(module); }); });
}
int32_t ringlet_fully_shard_backward(ringlet_fully_shard* sharded, size_t module, ringlet_unsharded** unsharded,
                                     const ringlet_named_tensor** parameters, size_t* count) {
  return guarded(__func__,
                 [&] { give_unsharded(unsharded, parameters, count, [&] { return value_of(sharded, "sharded").backward(module); }); });
}
void ringlet_unsharded_release(ringlet_unsharded* unsharded) { delete unsharded; }

int32_t ringlet_fully_shard_reduce_gradients(ringlet_fully_shard* sharded, size_t module, const ringlet_named_tensor* gradients,
                                             size_t count) {
  return guarded(__func__, [&] { value_of(sharded, "sharded").reduce_gradients(module, tree_of(gradients, count, "gradients")); });
}
int32_t ringlet_fully_shard_finish(ringlet_fully_shard* sharded) {
  return guarded(__func__, [&] { value_of(sharded, "sharded").finish(); });
}

int32_t ringlet_fully_shard_parameters(ringlet_fully_shard* sharded, const ringlet_named_tensor** parameters, size_t* count) {
  return guarded(__func__, [&] {
    auto& handle = *required(sharded, "sharded");
    handle.parameters = ExportedTree(handle.value.parameters());
    handle.parameters.give(parameters, count);
  });
}
int32_t ringlet_fully_shard_gradients(ringlet_fully_shard* sharded, const ringlet_named_tensor** gradients, size_t* count) {
  return guarded(__func__, [&] {
    auto& handle = *required(sharded, "sharded");
    handle.gradients = ExportedTree(handle.value.gradients());
    handle.gradients.give(gradients, count);
  });
}
int32_t ringlet_fully_shard_layout(const ringlet_fully_shard* sharded, ringlet_shard_layout** layout) {
  return guarded(__func__, [&] { give(layout, "layout", [&] { return value_of(sharded, "sharded").layout(); }); });
}
