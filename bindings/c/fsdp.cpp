#include <ringlet/c/fsdp.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

struct ringlet_fsdp_updater {
  ringlet::FsdpUpdater value;
};

namespace {

ringlet_fsdp_options fsdp_defaults() {
  const ringlet::FsdpOptions defaults;
  return {.struct_size = sizeof(ringlet_fsdp_options),
          .dp_group = nullptr,
          .communication_size = defaults.communication_size,
          .max_norm = nullptr,
          .shard_weights = nullptr,
          .shard_weight_count = 0,
          .reduce_dtype = RINGLET_NO_DTYPE,
          .stream = 0,
          .feedback = ringlet::BlockOptions().feedback,
          .least_elements = static_cast<int64_t>(ringlet::BlockOptions().least_elements)};
}

ringlet::FsdpOptions fsdp_options(const ringlet_fsdp_options* given) {
  const auto read = options_or(given, fsdp_defaults());
  const auto weights = array_of(read.shard_weights, read.shard_weight_count, "shard_weights");
  ringlet::FsdpOptions options;
  if (read.dp_group != nullptr) options.dp_group = read.dp_group->value;
  options.communication_size = read.communication_size;
  if (read.max_norm != nullptr) options.max_norm = *read.max_norm;
  options.reduce_dtype = optional_wire(read.reduce_dtype, "reduce_dtype", read.feedback, read.least_elements);
  options.shard_weights.assign(weights.begin(), weights.end());
  options.stream = stream_of(read.stream);
  return options;
}

/// The two trees of a step, made from the caller's arrays.
struct StepTrees {
  ringlet::Tree gradients, parameters;

  StepTrees(const ringlet_named_tensor* gradient_array, size_t gradient_count, const ringlet_named_tensor* parameter_array,
            size_t parameter_count)
      : gradients(tree_of(gradient_array, gradient_count, "gradients")),
        parameters(tree_of(parameter_array, parameter_count, "parameters")) {}
};

void take_step(ringlet::FsdpUpdater& updater, const StepTrees& trees, const ringlet::ApplyGradients& apply, double* norm) {
  const auto before = updater.apply_gradients(trees.gradients, trees.parameters, apply);
  if (norm != nullptr) *norm = before.value_or(-1);
}

ringlet::ApplyGradients by_optimizer(ringlet_optimizer* optimizer) {
  return [&used = *value_of(optimizer, "optimizer")](const ringlet::Tree& gradients, const ringlet::Tree& parameters) {
    used.apply_gradients(gradients, parameters);
  };
}

ringlet::ApplyGradients by_callback(ringlet_apply_gradients apply, void* context) {
  return [apply = required(apply, "apply"), context](const ringlet::Tree& gradients, const ringlet::Tree& parameters) {
    const ExportedTree g(gradients), p(parameters);
    require_callback_success("apply", apply(context, g.tensors().data(), g.tensors().size(), p.tensors().data(), p.tensors().size()));
  };
}

}  // namespace

int32_t ringlet_fsdp_options_init(ringlet_fsdp_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, fsdp_defaults());
}

int32_t ringlet_fsdp_apply_gradients(ringlet_group* group, const ringlet_named_tensor* gradients, size_t gradient_count,
                                     const ringlet_named_tensor* parameters, size_t parameter_count, ringlet_optimizer* optimizer,
                                     const ringlet_fsdp_options* options, double* norm) {
  return guarded(__func__, [&] {
    ringlet::FsdpUpdater updater = ringlet::detail::updater_of_one_step(value_of(group, "group"), fsdp_options(options));
    take_step(updater, {gradients, gradient_count, parameters, parameter_count}, by_optimizer(optimizer), norm);
  });
}
int32_t ringlet_fsdp_apply_gradients_with(ringlet_group* group, const ringlet_named_tensor* gradients, size_t gradient_count,
                                          const ringlet_named_tensor* parameters, size_t parameter_count, ringlet_apply_gradients apply,
                                          void* context, const ringlet_fsdp_options* options, double* norm) {
  return guarded(__func__, [&] {
    ringlet::FsdpUpdater updater = ringlet::detail::updater_of_one_step(value_of(group, "group"), fsdp_options(options));
    take_step(updater, {gradients, gradient_count, parameters, parameter_count}, by_callback(apply, context), norm);
  });
}

int32_t ringlet_fsdp_updater_create(ringlet_group* group, const ringlet_fsdp_options* options, ringlet_fsdp_updater** updater) {
  return guarded(__func__,
                 [&] { give(updater, "updater", [&] { return ringlet::FsdpUpdater(value_of(group, "group"), fsdp_options(options)); }); });
}
int32_t ringlet_fsdp_updater_apply_gradients(ringlet_fsdp_updater* updater, const ringlet_named_tensor* gradients, size_t gradient_count,
                                             const ringlet_named_tensor* parameters, size_t parameter_count, ringlet_optimizer* optimizer,
                                             double* norm) {
  return guarded(__func__, [&] {
    take_step(value_of(updater, "updater"), {gradients, gradient_count, parameters, parameter_count}, by_optimizer(optimizer), norm);
  });
}
int32_t ringlet_fsdp_updater_apply_gradients_with(ringlet_fsdp_updater* updater, const ringlet_named_tensor* gradients,
                                                  size_t gradient_count, const ringlet_named_tensor* parameters, size_t parameter_count,
                                                  ringlet_apply_gradients apply, void* context, double* norm) {
  return guarded(__func__, [&] {
    take_step(value_of(updater, "updater"), {gradients, gradient_count, parameters, parameter_count}, by_callback(apply, context), norm);
  });
}
void ringlet_fsdp_updater_free(ringlet_fsdp_updater* updater) { delete updater; }

int32_t ringlet_shard_layout_create(const ringlet_named_tensor* tensors, size_t count, int32_t ranks, const double* weights,
                                    size_t weight_count, ringlet_shard_layout** layout) {
  return guarded(__func__, [&] {
    give(layout, "layout",
         [&] { return ringlet::ShardLayout(tree_of(tensors, count, "tensors"), ranks, array_of(weights, weight_count, "weights")); });
  });
}
int32_t ringlet_fsdp_updater_layout(const ringlet_fsdp_updater* updater, ringlet_shard_layout** layout) {
  return guarded(__func__, [&] {
    give(layout, "layout", [&] {
      const ringlet::ShardLayout* last = value_of(updater, "updater").layout();
      if (last == nullptr) throw BadArgument("the updater has no layout before its first step");
      return *last;
    });
  });
}
int32_t ringlet_shard_layout_rows(const ringlet_shard_layout* layout, const char* name, int32_t rank, int64_t* begin, int64_t* end) {
  return guarded(__func__, [&] {
    const ringlet::RowRange rows = value_of(layout, "layout").rows(required(name, "name"), rank);
    *required(end, "end") = rows.end;
    *required(begin, "begin") = rows.begin;
  });
}
void ringlet_shard_layout_free(ringlet_shard_layout* layout) { delete layout; }

int32_t ringlet_clip_grad_norm_sharded(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count, double max_norm,
                                       int32_t stream, double* norm) {
  return guarded(__func__, [&] {
    const double before =
        ringlet::clip_grad_norm_sharded(value_of(group, "group"), tree_of(gradients, count, "gradients"), max_norm, stream_of(stream));
    if (norm != nullptr) *norm = before;
  });
}

int32_t ringlet_shard_axis(const ringlet_group* group, const ringlet_tensor* input, size_t axis, const int64_t* segments,
                           size_t segment_count, const ringlet_tensor* output) {
  return guarded(__func__, [&] {
    ringlet::copy(
        ringlet::shard_axis(value_of(group, "group"), read_view(input, "input"), axis, array_of(segments, segment_count, "segments")),
        written_view(output, "output"));
  });
}
