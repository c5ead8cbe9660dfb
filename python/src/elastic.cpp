#include <ringlet/elastic.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "callbacks.hpp"
#include "elastic_shards.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "held.hpp"
#include "layouts.hpp"
#include "lock.hpp"
#include "trainers.hpp"
#include "trees.hpp"
#include "works.hpp"

namespace ringlet::python {
namespace {

using nb::arg;
using Seconds = std::optional<double>;

/// A step as long as its function runs; the program may keep the object for longer.
class StepHandle {
 public:
  explicit StepHandle(Step& step) : step_(&step) {}

  Step& get() const {
    if (step_ == nullptr) refuse("this step is over: its object is valid while the step function runs");
    return *step_;
  }
  void end() { step_ = nullptr; }

 private:
  Step* step_;
};

void call_with(Step& attempt, const nb::callable& function) {
  const nb::object object = nb::cast(StepHandle(attempt));
  struct Ending {
    ~Ending() { handle.end(); }
    StepHandle& handle;
  } ending{nb::cast<StepHandle&>(object)};
  function(object);
}

/// A trainer with what it borrows and calls.
class TrainerHandle {
 public:
  /// `shards` is an ElasticShards or None.
  TrainerHandle(GroupHandle& world, CheckpointHandle& state, nb::object shards, TrainerCalls functions, ElasticTrainerOptions options)
      : calls_(std::move(functions)), arrays_(state.arrays) {
    calls_.connect(options);
    options.on_rollback = [this](const Rollback& rollback) {
      call_python([&] { on_rollback(rollback.lost, rollback.from, rollback.to); });
    };
    if (shards.is_none()) {
      trainer_.emplace(std::make_shared<ElasticTrainer>(world.get(), state.checkpoint, std::move(options)));
      return;
    }
    auto& handle = nb::cast<ShardsHandle&>(shards);
    if (handle.has_trainer) refuse("the shards have an ElasticTrainer already");
    trainer_.emplace(std::make_shared<ElasticTrainer>(world.get(), state.checkpoint, *handle.shards.shared(), std::move(options)));
    shards_ = std::move(shards);
    take_shards(true);
  }
  TrainerHandle(const TrainerHandle&) = delete;
  TrainerHandle& operator=(const TrainerHandle&) = delete;
  ~TrainerHandle() {
    trainer_.reset();  // before another thread may give the shards another one
    if (shards_.is_valid()) take_shards(false);
  }

  void run(std::uint64_t steps, std::uint64_t batch, const nb::callable& step) {
    calling_back([&] {
      trainer().run({.steps = steps, .batch = batch}, [&](Step& attempt) { call_python([&] { call_with(attempt, step); }); });
      return true;
    });
  }
  ElasticTrainer& trainer() { return *trainer_->shared(); }
  Checkpoint& state() { return trainer().state(); }
  template <class Function>
  void for_each_function(Function function) {
    calls_.for_each_function(function);
    function(on_rollback);
  }

  nb::object on_rollback;  // a function

 private:
  /// The trainer may have replaced the memory of the rows, and will.
  void take_shards(bool has_trainer) {
    auto& handle = nb::cast<ShardsHandle&>(shards_);
    handle.has_trainer = has_trainer;
    ++handle.generation;
  }

  TrainerCalls calls_;
  std::vector<ArrayView> arrays_;
  nb::object shards_;
  std::optional<Held<ElasticTrainer>> trainer_;  // until the end
};

void bind_step(nb::module_& module) {
  Class<StepHandle>(module, "Step", "One attempt at a training step on this rank; valid while the step function runs.")
      .def("world", [](const StepHandle& handle) { return GroupHandle(handle.get().world()); })
      .def(
          "add", [](const StepHandle& handle, const ArrayView& gradient) { handle.get().add(gradient.writable()); }, arg("gradient"),
          "Adds a gradient, whose array is kept until average() has returned.")
      .def(
          "average",
          [](const StepHandle& handle) {
            Step& step = handle.get();
            calling_back([&] {
              step.average();
              return true;
            });
          },
          "Averages what was added.")
      .def(
          "average",
          [](const StepHandle& handle, const ArrayTree& gradients) {
            Step& step = handle.get();
            calling_back([&] {
              step.average(gradients.tree());
              return true;
            });
          },
          arg("gradients"), "Waits until every gradient holds its average over the samples of the whole batch.")
      .def(
          "commit",
          [](const StepHandle& handle, const nb::callable& apply) {
            Step& step = handle.get();
            calling_back([&] {
              step.commit([&] { call_python([&] { apply(); }); });
              return true;
            });
          },
          arg("apply"), "Runs `apply`, which changes the state, on all ranks or on none; the last call of a step.")
      .def_prop_ro(
          "number", [](const StepHandle& handle) { return handle.get().number(); }, "How many steps were committed before it.")
      .def_prop_ro(
          "first", [](const StepHandle& handle) { return handle.get().first(); }, "The first of this rank's samples of the batch.")
      .def_prop_ro(
          "count", [](const StepHandle& handle) { return handle.get().count(); }, "How many samples this rank has, from `first` on.");
}

}  // namespace

void TrainerCalls::connect(ElasticTrainerOptions& options) {
  options.on_change = [this](const MembershipChange& change) {
    call_python([&] {
      on_change(GroupHandle(change.world), change.lost, change.joined, change.cause.text(), change.step,
                std::chrono::duration<double>(change.pause).count());
    });
  };
  options.on_state = [this](const Checkpoint& state, std::uint64_t step) {
    call_python([&] { on_state(CheckpointHandle{state, {}, {}}, step); });
  };
  if (on_world.is_none()) return;
  options.on_world = [this](Group world) { call_python([&] { on_world(GroupHandle(std::move(world))); }); };
}

ElasticTrainerOptions options_of_trainer(std::int64_t all_reduce_size, const std::optional<Wire>& communication_type,
                                         std::optional<int> min_ranks, std::optional<double> min_wait, bool rejoin,
                                         const std::string& checkpoint, std::uint64_t checkpoint_every, int keep, int stream) {
  ElasticTrainerOptions options;
  options.average = {
      .all_reduce_size = all_reduce_size, .communication_type = communication_type, .stream = options_of(stream, std::nullopt).stream};
  options.min_ranks = min_ranks;
  options.min_wait = milliseconds_of(min_wait, "min_wait");
  options.rejoin = rejoin;
  options.checkpoint = checkpoint;
  options.checkpoint_every = checkpoint_every;
  options.keep = keep;
  return options;
}

void bind_elastic(nb::module_& module) {
  bind_step(module);
  define(
      module, "read_min_ranks",
      [](std::optional<int> min_ranks, Seconds min_wait) {
        const MinRanks read = read_min_ranks({.min_ranks = min_ranks, .min_wait = milliseconds_of(min_wait, "min_wait")});
        return nb::make_tuple(read.count, std::chrono::duration<double>(read.wait).count());
      },
      arg("min_ranks").none(), arg("min_wait").none());
  Class<TrainerHandle> trainer(module, "ElasticTrainer", "A training loop of an elastic group, whose ranks come and go.",
                               nb::type_slots(slots_of_functions<TrainerHandle>()));
  trainer
      .def(
          "__init__",
          [](TrainerHandle* handle, GroupHandle& world, CheckpointHandle& state, nb::object shards, std::int64_t size,
             const std::optional<Wire>& wire, std::optional<int> min_ranks, Seconds min_wait, bool rejoin, const std::string& checkpoint,
             std::uint64_t every, int keep, int stream, nb::object on_change, nb::object on_rollback, nb::object on_state,
             nb::object on_world) {
            new (handle) TrainerHandle(world, state, std::move(shards), {std::move(on_change), std::move(on_state), std::move(on_world)},
                                       options_of_trainer(size, wire, min_ranks, min_wait, rejoin, checkpoint, every, keep, stream));
            handle->on_rollback = std::move(on_rollback);
          },
          arg("world"), arg("state"), arg("shards").none(), arg("all_reduce_size"), arg("communication_type").none(),
          arg("min_ranks").none(), arg("min_wait").none(), arg("rejoin"), arg("checkpoint"), arg("checkpoint_every"), arg("keep"),
          arg("stream"), arg("on_change"), arg("on_rollback"), arg("on_state"), arg("on_world").none())
      .def(
          "run",
          [](TrainerHandle& handle, std::uint64_t steps, std::uint64_t batch, const nb::callable& step) { handle.run(steps, batch, step); },
          arg("steps"), arg("batch"), arg("step"))
      .def("world", [](TrainerHandle& handle) { return GroupHandle(handle.trainer().world()); })
      .def("step", [](TrainerHandle& handle) { return handle.trainer().step(); });
  bind_values(trainer);
}

}  // namespace ringlet::python
