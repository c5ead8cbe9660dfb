#include <ringlet/c/elastic.h>

#include <chrono>
#include <ringlet/elastic.hpp>
#include <utility>
#include <vector>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

struct ringlet_elastic_trainer {
  std::shared_ptr<ringlet::ElasticTrainer> shared;  // a handle of its state keeps it alive
  ringlet::ElasticTrainer& value = *shared;
};

struct ringlet_step {
  ringlet::Step& value;
};

namespace {

ringlet_elastic_options elastic_defaults() {
  const ringlet::ElasticTrainerOptions defaults;
  return {.struct_size = sizeof(ringlet_elastic_options),
          .average = nullptr,
          .min_ranks = -1,
          .rejoin = defaults.rejoin ? 1 : 0,
          .checkpoint = nullptr,
          .checkpoint_every = defaults.checkpoint_every,
          .keep = defaults.keep,
          .context = nullptr,
          .on_change = nullptr,
          .on_state = nullptr,
          .min_wait_ms = -1,
          .on_world = nullptr};
}

void tell_change(const ringlet_elastic_options& to, const ringlet::MembershipChange& change) {
  const ringlet_group world{change.world};
  const std::vector<int32_t> lost(change.lost.begin(), change.lost.end());
  const std::string cause(change.cause.text());
  const ringlet_membership_change told{.world = &world,
                                       .lost = lost.data(),
                                       .lost_count = lost.size(),
                                       .joined = change.joined,
                                       .cause = static_cast<int32_t>(change.cause.code()),
                                       .cause_rank = change.cause.rank(),
                                       .cause_message = cause.c_str(),
                                       .step = change.step,
                                       .pause_ns = change.pause.count()};
  to.on_change(to.context, &told);
}

void tell_state(const ringlet_elastic_options& to, const ringlet::Checkpoint& state, std::uint64_t step) {
  const ringlet_checkpoint told{std::make_shared<ringlet::Checkpoint>(state)};
  to.on_state(to.context, &told, step);
}

void enter_world(const ringlet_elastic_options& to, ringlet::Group world) {
  ringlet_group entered{std::move(world)};
  rethrow_failure_of_callback("on_world", to.on_world(to.context, &entered));
}

}  // namespace

ringlet::ElasticTrainerOptions ringlet::c::elastic_options(const ringlet_elastic_options* given) {
  const auto read = options_or(given, elastic_defaults());
  ringlet::ElasticTrainerOptions options;
  options.average = average_options(read.average, {});
  if (read.min_ranks != -1) options.min_ranks = read.min_ranks;
  if (read.min_wait_ms != -1) options.min_wait = std::chrono::milliseconds(read.min_wait_ms);
  options.rejoin = read.rejoin != 0;
  if (read.checkpoint != nullptr) options.checkpoint = read.checkpoint;
  options.checkpoint_every = read.checkpoint_every;
  options.keep = read.keep;
  if (read.on_change != nullptr) options.on_change = [read](const auto& change) { tell_change(read, change); };
  if (read.on_state != nullptr) options.on_state = [read](const auto& state, std::uint64_t step) { tell_state(read, state, step); };
  if (read.on_world != nullptr) options.on_world = [read](ringlet::Group world) { enter_world(read, std::move(world)); };
  return options;
}

int32_t ringlet_elastic_options_init(ringlet_elastic_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, elastic_defaults());
}

int32_t ringlet_elastic_trainer_create(ringlet_group* group, const ringlet_checkpoint* state, const ringlet_elastic_options* options,
                                       ringlet_elastic_trainer** trainer) {
  return guarded(__func__, [&] {
    give(trainer, "trainer", [&] {
      return std::make_shared<ringlet::ElasticTrainer>(value_of(group, "group"), value_of(state, "state"), elastic_options(options));
    });
  });
}
void ringlet_elastic_trainer_free(ringlet_elastic_trainer* trainer) { delete trainer; }

int32_t ringlet_elastic_trainer_run(ringlet_elastic_trainer* trainer, uint64_t steps, uint64_t batch, ringlet_step_function step,
                                    void* context) {
  return guarded(__func__, [&] {
    auto& value = value_of(trainer, "trainer");
    required(step, "step");
    value.run({.steps = steps, .batch = batch}, [&](ringlet::Step& attempt) {
      ringlet_step handle{attempt};
      rethrow_failure_of_callback("the step function", step(context, &handle));
    });
  });
}

int32_t ringlet_elastic_trainer_step(const ringlet_elastic_trainer* trainer, uint64_t* step) {
  return guarded(__func__, [&] { *required(step, "step") = value_of(trainer, "trainer").step(); });
}

int32_t ringlet_elastic_trainer_group(const ringlet_elastic_trainer* trainer, ringlet_group** group) {
  return guarded(__func__, [&] { give(group, "group", [&] { return value_of(trainer, "trainer").world(); }); });
}

int32_t ringlet_elastic_trainer_state(ringlet_elastic_trainer* trainer, ringlet_checkpoint** state) {
  return guarded(__func__, [&] {
    give(state, "state", [&] {
      const auto& shared = required(trainer, "trainer")->shared;
      return std::shared_ptr<ringlet::Checkpoint>(shared, &shared->state());
    });
  });
}

int32_t ringlet_step_samples(const ringlet_step* step, uint64_t* number, uint64_t* first, uint64_t* count) {
  return guarded(__func__, [&] {
    const ringlet::Step& value = value_of(step, "step");
    if (number != nullptr) *number = value.number();
    if (first != nullptr) *first = value.first();
    if (count != nullptr) *count = value.count();
  });
}

int32_t ringlet_step_group(const ringlet_step* step, ringlet_group** group) {
  return guarded(__func__, [&] { give(group, "group", [&] { return value_of(step, "step").world(); }); });
}

int32_t ringlet_step_add(ringlet_step* step, const ringlet_tensor* gradient) {
  return guarded(__func__, [&] { value_of(step, "step").add(written_view(gradient, "gradient")); });
}

int32_t ringlet_step_average(ringlet_step* step) {
  return guarded(__func__, [&] { value_of(step, "step").average(); });
}

int32_t ringlet_step_average_gradients(ringlet_step* step, const ringlet_named_tensor* gradients, size_t count) {
  return guarded(__func__, [&] { value_of(step, "step").average(tree_of(gradients, count, "gradients")); });
}

int32_t ringlet_step_commit(ringlet_step* step, ringlet_apply_function apply, void* context) {
  return guarded(__func__, [&] {
    auto& value = value_of(step, "step");
    required(apply, "apply");
    value.commit([&] { require_callback_success("apply", apply(context)); });
  });
}
