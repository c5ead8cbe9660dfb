#include <ringlet/outer.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "callbacks.hpp"
#include "group.hpp"
#include "held.hpp"
#include "layouts.hpp"
#include "optimizers.hpp"
#include "trainers.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

using nb::arg;

/// A function of Python's that returns a number, called within calling_back().
template <class... Arguments>
double number_of(const nb::object& function, Arguments... arguments) {
  double number = 0;
  call_python([&] { number = nb::cast<double>(function(arguments...)); });
  return number;
}

/// A trainer with what it borrows and calls.
class OuterHandle {
 public:
  /// `clock` is None or a function that returns seconds.
  OuterHandle(GroupHandle& world, const ArrayTree& parameters, TrainerCalls functions, nb::object clock, OuterTrainerOptions options)
      : calls_(std::move(functions)),
        clock_(std::move(clock)),
        arrays_(parameters.arrays()),
        trainer_(std::make_shared<OuterTrainer>(world.get(), parameters.tree(), connected(std::move(options)))) {}
  OuterHandle(const OuterHandle&) = delete;
  OuterHandle& operator=(const OuterHandle&) = delete;

  void run(std::uint64_t steps, const nb::callable& inner) {
    calling_back([&] {
      trainer_->run(steps, [&](const InnerStep& step) { return number_of(inner, step.number, step.rank, step.ranks); });
      return true;
    });
  }
  const OuterTrainer& trainer() const { return *trainer_.shared(); }
  Checkpoint& state() { return trainer_->state(); }
  template <class Function>
  void for_each_function(Function function) {
    calls_.for_each_function(function);
    function(clock_);
  }

 private:
  OuterTrainerOptions connected(OuterTrainerOptions options) {
    calls_.connect(options.elastic);
    if (!clock_.is_none()) options.clock = [this] { return number_of(clock_); };
    return options;
  }

  TrainerCalls calls_;
  nb::object clock_;
  std::vector<ArrayView> arrays_;
  Held<OuterTrainer> trainer_;
};

void bind_trainer(Class<OuterHandle>& trainer) {
  trainer
      .def(
          "__init__",
          [](OuterHandle* handle, GroupHandle& world, const ArrayTree& parameters, int inner_steps, int fragments, int overlap,
             double mixing, bool by_speed, nb::object clock, nb::object learning_rate, double momentum, bool nesterov,
             const std::optional<Wire>& wire, std::int64_t size, std::optional<int> min_ranks, std::optional<double> min_wait, bool rejoin,
             const std::string& checkpoint, std::uint64_t every, int keep, int stream, nb::object on_change, nb::object on_state,
             nb::object on_world) {
            OuterTrainerOptions options;
            options.inner_steps = inner_steps;
            options.fragments = fragments;
            options.overlap = overlap;
            options.mixing = mixing;
            options.by_speed = by_speed;
            options.learning_rate = rate_of(learning_rate);
            options.momentum = momentum;
            options.nesterov = nesterov;
            options.wire = wire;
            options.elastic = options_of_trainer(size, std::nullopt, min_ranks, min_wait, rejoin, checkpoint, every, keep, stream);
            new (handle) OuterHandle(world, parameters, {std::move(on_change), std::move(on_state), std::move(on_world)}, std::move(clock),
                                     std::move(options));
          },
          arg("world"), arg("parameters"), arg("inner_steps"), arg("fragments"), arg("overlap"), arg("mixing"), arg("by_speed"),
          arg("clock").none(), arg("learning_rate"), arg("momentum"), arg("nesterov"), arg("wire").none(), arg("all_reduce_size"),
          arg("min_ranks").none(), arg("min_wait").none(), arg("rejoin"), arg("checkpoint"), arg("checkpoint_every"), arg("keep"),
          arg("stream"), arg("on_change"), arg("on_state"), arg("on_world").none())
      .def(
          "run", [](OuterHandle& handle, std::uint64_t steps, const nb::callable& inner) { handle.run(steps, inner); }, arg("steps"),
          arg("inner"))
      .def("world", [](OuterHandle& handle) { return GroupHandle(handle.trainer().world()); })
      .def("averages", [](OuterHandle& handle) { return handle.trainer().averages(); })
      .def("steps", [](OuterHandle& handle) { return handle.trainer().steps(); })
      .def("shared_parameters", [](nb::handle self) { return exported(nb::cast<OuterHandle&>(self).trainer().shared_parameters(), self); })
      .def(
          "fragment",
          [](OuterHandle& handle, int index) {
            nb::list names;
            for (const Leaf& leaf : handle.trainer().fragment(index)) names.append(leaf.name);
            return names;
          },
          arg("index"));
  bind_values(trainer);
}

}  // namespace

void bind_outer(nb::module_& module) {
  Class<OuterHandle> trainer(module, "OuterTrainer", "Training with few averages, for slow networks.",
                             nb::type_slots(slots_of_functions<OuterHandle>()));
  bind_trainer(trainer);
}

}  // namespace ringlet::python
