#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <optional>
#include <ringlet/checkpoint.hpp>
#include <ringlet/sharding.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"

namespace ringlet::python {

/// A checkpoint, and what it has been given, which it keeps alive.
struct CheckpointHandle {
  /// An ElasticShards that has added its rows, and in which memory.
  struct Rows {
    nb::object owner;
    std::uint64_t generation;
  };

  Checkpoint& state() { return checkpoint; }

  Checkpoint checkpoint;
  std::vector<ArrayView> arrays;
  std::vector<Rows> rows;
};

/// Gives a class the values of its state, which is the handle's state().
template <class Handle>
void bind_values(Class<Handle>& bound) {
  bound
      .def(
          "find",
          [](Handle& handle, const std::string& name) {
            const CheckpointValue* value = handle.state().find(name);
            return value ? std::optional<CheckpointValue>(*value) : std::nullopt;
          },
          nb::arg("name"))
      .def(
          "set",
          [](Handle& handle, const std::string& name, const std::variant<std::int64_t, double, std::string>& value) {
            std::visit([&](const auto& own) { handle.state().set(name, own); }, value);
          },
          nb::arg("name"), nb::arg("value"));
}

}  // namespace ringlet::python
