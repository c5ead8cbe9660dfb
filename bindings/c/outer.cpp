#include <ringlet/c/outer.h>

#include <ringlet/outer.hpp>
#include <utility>

#include "bindings/c/arguments.hpp"
#include "bindings/c/exported_tree.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

struct ringlet_outer_trainer {
  std::shared_ptr<ringlet::OuterTrainer> shared;  // a handle of its state keeps it alive
  ringlet::OuterTrainer& value = *shared;
  ExportedTree exported{};
};

namespace {

ringlet_outer_options outer_defaults() {
  const ringlet::OuterTrainerOptions defaults;
  return {.struct_size = sizeof(ringlet_outer_options),
          .inner_steps = defaults.inner_steps,
          .fragments = defaults.fragments,
          .overlap = defaults.overlap,
          .by_speed = defaults.by_speed ? 1 : 0,
          .mixing = defaults.mixing,
          .learning_rate = defaults.learning_rate.at(0),
          .momentum = defaults.momentum,
          .nesterov = defaults.nesterov ? 1 : 0,
          .context = nullptr,
          .schedule = nullptr,
          .clock = nullptr,
          .elastic = nullptr};
}

ringlet::OuterTrainerOptions outer_options(const ringlet_outer_options* given) {
  const auto read = options_or(given, outer_defaults());
  ringlet::OuterTrainerOptions options;
  options.inner_steps = read.inner_steps;
  options.fragments = read.fragments;
  options.overlap = read.overlap;
  options.by_speed = read.by_speed != 0;
  options.mixing = read.mixing;
  options.learning_rate = read.learning_rate;
  options.momentum = read.momentum;
  options.nesterov = read.nesterov != 0;
  if (read.schedule != nullptr)
    options.learning_rate = ringlet::Schedule([read](std::uint64_t averages) { return read.schedule(read.context, averages); });
  if (read.clock != nullptr) options.clock = [read] { return read.clock(read.context); };
  options.elastic = elastic_options(read.elastic);
  options.wire = std::exchange(options.elastic.average.communication_type, std::nullopt);
  return options;
}

}  // namespace

int32_t ringlet_outer_options_init(ringlet_outer_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, outer_defaults());
}

int32_t ringlet_outer_trainer_create(ringlet_group* group, const ringlet_named_tensor* parameters, size_t count,
                                     const ringlet_outer_options* options, ringlet_outer_trainer** trainer) {
  return guarded(__func__, [&] {
    give(trainer, "trainer", [&] {
      return std::make_shared<ringlet::OuterTrainer>(value_of(group, "group"), tree_of(parameters, count, "parameters"),
                                                     outer_options(options));
    });
  });
}
void ringlet_outer_trainer_free(ringlet_outer_trainer* trainer) { delete trainer; }

int32_t ringlet_outer_trainer_run(ringlet_outer_trainer* trainer, uint64_t steps, ringlet_inner_function inner, void* context) {
  return guarded(__func__, [&] {
    auto& value = value_of(trainer, "trainer");
    required(inner, "inner");
    value.run(steps, [&](const ringlet::InnerStep& step) {
      const ringlet_inner_step told{.number = step.number, .rank = step.rank, .ranks = step.ranks};
      double samples = 0;
      rethrow_failure_of_callback("the function of an inner step", inner(context, &told, &samples));
      return samples;
    });
  });
}

int32_t ringlet_outer_trainer_shared_parameters(ringlet_outer_trainer* trainer, const ringlet_named_tensor** tensors, size_t* count) {
  return guarded(__func__, [&] {
    auto& handle = *required(trainer, "trainer");
    handle.exported = ExportedTree(handle.value.shared_parameters());
    handle.exported.give(tensors, count);
  });
}

int32_t ringlet_outer_trainer_fragment(ringlet_outer_trainer* trainer, int32_t index, const ringlet_named_tensor** tensors, size_t* count) {
  return guarded(__func__, [&] {
    auto& handle = *required(trainer, "trainer");
    handle.exported = ExportedTree(handle.value.fragment(index));
    handle.exported.give(tensors, count);
  });
}

int32_t ringlet_outer_trainer_averages(const ringlet_outer_trainer* trainer, uint64_t* averages) {
  return guarded(__func__, [&] { *required(averages, "averages") = value_of(trainer, "trainer").averages(); });
}

int32_t ringlet_outer_trainer_steps(const ringlet_outer_trainer* trainer, uint64_t* steps) {
  return guarded(__func__, [&] { *required(steps, "steps") = value_of(trainer, "trainer").steps(); });
}

int32_t ringlet_outer_trainer_group(const ringlet_outer_trainer* trainer, ringlet_group** group) {
  return guarded(__func__, [&] { give(group, "group", [&] { return value_of(trainer, "trainer").world(); }); });
}

int32_t ringlet_outer_trainer_state(ringlet_outer_trainer* trainer, ringlet_checkpoint** state) {
  return guarded(__func__, [&] {
    give(state, "state", [&] {
      const auto& shared = required(trainer, "trainer")->shared;
      return std::shared_ptr<ringlet::Checkpoint>(shared, &shared->state());
    });
  });
}
