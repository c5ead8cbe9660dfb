#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <ringlet/elastic.hpp>
#include <string>

namespace ringlet::python {

namespace nb = nanobind;

/// Functions of Python's that a trainer calls, on the thread that calls its run().
struct TrainerCalls {
  /// Has the trainer with these options call them, on_world where it is not None. This object stays where it is until the trainer's end.
  void connect(ElasticTrainerOptions& options);
  template <class Function>
  void for_each_function(Function function) {
    for (nb::object* each : {&on_change, &on_state, &on_world}) function(*each);
  }

  nb::object on_change, on_state, on_world;
};

/// The slots of a trainer's class by which Python finds and breaks cycles of references through the functions that trainers hold, such as
/// methods of the object that holds the trainer, but not through functions of learning rates, which the library holds.
/// `Handle::for_each_function` gives all that it finds to a function.
template <class Handle>
PyType_Slot* slots_of_functions() {
  constexpr traverseproc kTraverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    int result = 0;
    if (nb::inst_ready(self))
      nb::inst_ptr<Handle>(self)->for_each_function([&](const nb::object& function) {
        if (result == 0 && function.is_valid()) result = visit(function.ptr(), arg);
      });
    return result;
  };
  constexpr inquiry kClear = [](PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Handle>(self)->for_each_function([](nb::object& function) { function = nb::none(); });
    return 0;
  };
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(kTraverse)}, {Py_tp_clear, reinterpret_cast<void*>(kClear)}, {}};
  return slots;
}

/// The options that all trainers have, but for those of TrainerCalls.
ElasticTrainerOptions options_of_trainer(std::int64_t all_reduce_size, const std::optional<Wire>& communication_type,
                                         std::optional<int> min_ranks, std::optional<double> min_wait, bool rejoin,
                                         const std::string& checkpoint, std::uint64_t checkpoint_every, int keep, int stream);

}  // namespace ringlet::python
