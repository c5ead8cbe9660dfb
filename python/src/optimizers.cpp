#include "optimizers.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <ringlet/schedules.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "callbacks.hpp"
#include "errors.hpp"
#include "lock.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

using nb::arg;
using Betas = std::array<double, 2>;
using Name = std::optional<std::string>;

/// A schedule of the library's, as Python holds it.
struct ScheduleHandle {
  Schedule schedule;
};

/// A schedule that calls Python's function. It may be copied, called and destroyed on any thread.
Schedule schedule_calling(nb::object function) {
  return [kept = shared_object(std::move(function))](std::uint64_t step) {
    return with_lock([&] {
      const nb::object returned = (*kept)(step);
      double rate = 0;
      if (!nb::try_cast(returned, rate))
        refuse("the schedule returned " + shown(returned) + " for step " + std::to_string(step) + "; it returns a number");
      return rate;
    });
  };
}

Schedule schedule_of(nb::handle object) {
  if (nb::isinstance<ScheduleHandle>(object)) return nb::cast<const ScheduleHandle&>(object).schedule;
  if (!PyCallable_Check(object.ptr()))
    throw nb::type_error(("the learning rate is " + shown(object) + "; it is a number or a function of the step").c_str());
  return schedule_calling(nb::borrow(object));
}

template <class Kind, class Options>
OptimizerHandle make(nb::handle rate, const Options& options) {
  return {std::make_shared<Kind>(rate_of(rate), options)};
}

void bind_kinds(nb::module_& module) {
  define(
      module, "sgd",
      [](nb::handle rate, double momentum, double weight_decay, double dampening, bool nesterov, const Name& state_dtype) {
        return make<SGD>(rate, SGDOptions{momentum, weight_decay, dampening, nesterov, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("momentum"), arg("weight_decay"), arg("dampening"), arg("nesterov"), arg("state_dtype").none());
  define(
      module, "rmsprop",
      [](nb::handle rate, double alpha, double eps, const Name& state_dtype) {
        return make<RMSprop>(rate, RMSpropOptions{alpha, eps, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("alpha"), arg("eps"), arg("state_dtype").none());
  define(
      module, "adagrad",
      [](nb::handle rate, double eps, const Name& state_dtype) { return make<Adagrad>(rate, AdagradOptions{eps, dtype_of(state_dtype)}); },
      arg("learning_rate"), arg("eps"), arg("state_dtype").none());
  define(
      module, "adadelta",
      [](nb::handle rate, double rho, double eps, const Name& state_dtype) {
        return make<AdaDelta>(rate, AdaDeltaOptions{rho, eps, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("rho"), arg("eps"), arg("state_dtype").none());
  define(
      module, "adam",
      [](nb::handle rate, Betas betas, double eps, bool bias_correction, const Name& state_dtype) {
        return make<Adam>(rate, AdamOptions{betas, eps, bias_correction, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("betas"), arg("eps"), arg("bias_correction"), arg("state_dtype").none());
  define(
      module, "adamw",
      [](nb::handle rate, Betas betas, double eps, double weight_decay, bool bias_correction, const Name& state_dtype) {
        return make<AdamW>(rate, AdamWOptions{betas, eps, weight_decay, bias_correction, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("betas"), arg("eps"), arg("weight_decay"), arg("bias_correction"), arg("state_dtype").none());
  define(
      module, "adamax",
      [](nb::handle rate, Betas betas, double eps, const Name& state_dtype) {
        return make<Adamax>(rate, AdamaxOptions{betas, eps, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("betas"), arg("eps"), arg("state_dtype").none());
  define(
      module, "lion",
      [](nb::handle rate, Betas betas, double weight_decay, const Name& state_dtype) {
        return make<Lion>(rate, LionOptions{betas, weight_decay, dtype_of(state_dtype)});
      },
      arg("learning_rate"), arg("betas"), arg("weight_decay"), arg("state_dtype").none());
}

/// A filter that asks Python's function once for each name: it always decides alike for one, and gets a copy of the values.
MultiOptimizer::Filter filter_calling(nb::object function) {
  const auto decided = std::make_shared<std::unordered_map<std::string, bool>>();
  return [decided, kept = shared_object(std::move(function))](std::string_view name, ConstTensorView values) {
    if (const auto known = decided->find(std::string(name)); known != decided->end()) return known->second;
    const bool is_accepted = with_lock([&] { return nb::cast<bool>((*kept)(name, exported(Tensor::copy_of(values)))); });
    decided->emplace(name, is_accepted);
    return is_accepted;
  };
}

OptimizerHandle multi_optimizer(const nb::list& optimizers, const nb::list& filters) {
  std::vector<std::shared_ptr<Optimizer>> all;
  for (const nb::handle optimizer : optimizers) all.push_back(nb::cast<OptimizerHandle&>(optimizer).optimizer);
  std::vector<MultiOptimizer::Filter> deciding;
  for (const nb::handle filter : filters) deciding.push_back(filter_calling(nb::borrow(filter)));
  return {std::make_shared<MultiOptimizer>(std::move(all), std::move(deciding))};
}

void bind_schedules(nb::module_& module) {
  Class<ScheduleHandle>(module, "Schedule", "A number that changes from step to step.")
      .def("__call__", [](const ScheduleHandle& handle, std::uint64_t step) { return handle.schedule(step); }, arg("step"));
  define(
      module, "exponential_decay", [](double init, double decay_rate) { return ScheduleHandle{exponential_decay(init, decay_rate)}; },
      arg("init"), arg("decay_rate"));
  define(
      module, "step_decay",
      [](double init, double decay_rate, std::uint64_t step_size) { return ScheduleHandle{step_decay(init, decay_rate, step_size)}; },
      arg("init"), arg("decay_rate"), arg("step_size"));
  define(
      module, "cosine_decay", [](double init, std::uint64_t steps, double end) { return ScheduleHandle{cosine_decay(init, steps, end)}; },
      arg("init"), arg("decay_steps"), arg("end"));
  define(
      module, "linear_schedule",
      [](double init, double end, std::uint64_t steps) { return ScheduleHandle{linear_schedule(init, end, steps)}; }, arg("init"),
      arg("end"), arg("steps"));
  define(
      module, "join_schedules",
      [](const nb::list& schedules, std::vector<std::uint64_t> boundaries) {
        std::vector<Schedule> all;
        for (const nb::handle schedule : schedules) all.push_back(schedule_of(schedule));
        return ScheduleHandle{join_schedules(std::move(all), std::move(boundaries))};
      },
      arg("schedules"), arg("boundaries"));
}

}  // namespace

LearningRate rate_of(nb::handle object) {
  double rate = 0;
  if (nb::try_cast(nb::borrow(object), rate)) return rate;
  return LearningRate(schedule_of(object));
}

void bind_optimizers(nb::module_& module) {
  Class<OptimizerHandle>(module, "Optimizer", "An optimizer, which changes parameters by their gradients.")
      .def(
          "apply_gradients",
          [](OptimizerHandle& handle, const ArrayTree& gradients, const ArrayTree& parameters) {
            const WithoutLock unlocked;
            handle.optimizer->apply_gradients(gradients.tree(), parameters.tree());
          },
          arg("gradients"), arg("parameters"))
      .def(
          "init", [](OptimizerHandle& handle, const ArrayTree& parameters) { handle.optimizer->init(parameters.tree()); },
          arg("parameters"))
      .def("state", [](nb::handle self) { return exported(nb::cast<OptimizerHandle&>(self).optimizer->state(), self); })
      .def("state_bytes", [](OptimizerHandle& handle) { return handle.optimizer->state_bytes(); })
      .def_prop_rw(
          "step", [](OptimizerHandle& handle) { return handle.optimizer->step(); },
          [](OptimizerHandle& handle, std::uint64_t step) { handle.optimizer->set_step(step); })
      .def_prop_rw(
          "learning_rate", [](OptimizerHandle& handle) { return handle.optimizer->learning_rate(); },
          [](OptimizerHandle& handle, nb::handle rate) { handle.optimizer->set_learning_rate(rate_of(rate)); },
          nb::for_setter(arg("rate").none()));
  bind_kinds(module);
  define(module, "multi_optimizer", &multi_optimizer, arg("optimizers"), arg("filters"),
         "Several optimizers; a filter gets a name and what exported() returns, and decides for its optimizer.");
  bind_schedules(module);
}

}  // namespace ringlet::python
