#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <optional>
#include <ringlet/elastic.hpp>
#include <string>
#include <utility>

#include "arguments.hpp"

namespace ringlet::python {

namespace nb = nanobind;

/// Functions of Python's that a trainer calls, on the thread that calls its run().
struct TrainerCalls {
  /// Has the trainer with these options call them, on_world where it is not None. This object stays where it is until the trainer's end.
  void connect(ElasticTrainerOptions& options);

  nb::object on_change, on_state, on_world;
};

/// The options that all trainers have, but for those of TrainerCalls.
ElasticTrainerOptions options_of_trainer(std::int64_t all_reduce_size, const std::optional<Wire>& communication_type,
                                         std::optional<int> min_ranks, std::optional<double> min_wait, bool rejoin,
                                         const std::string& checkpoint, std::uint64_t checkpoint_every, int keep, int stream);

/// Gives a trainer's class the values of its state, which is the handle's state().
template <class Handle>
void bind_values(Class<Handle>& trainer) {
  trainer
      .def(
          "find",
          [](Handle& handle, const std::string& name) {
            const CheckpointValue* value = handle.state().find(name);
            return value ? std::optional<CheckpointValue>(*value) : std::nullopt;
          },
          nb::arg("name"))
      .def("set", [](Handle& handle, std::string name, std::int64_t value) { handle.state().set(std::move(name), value); })
      .def("set", [](Handle& handle, std::string name, double value) { handle.state().set(std::move(name), value); })
      .def("set", [](Handle& handle, std::string name, std::string value) { handle.state().set(std::move(name), std::move(value)); });
}

}  // namespace ringlet::python
