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

  nb::object on_change, on_state, on_world;
};

/// The options that all trainers have, but for those of TrainerCalls.
ElasticTrainerOptions options_of_trainer(std::int64_t all_reduce_size, const std::optional<Wire>& communication_type,
                                         std::optional<int> min_ranks, std::optional<double> min_wait, bool rejoin,
                                         const std::string& checkpoint, std::uint64_t checkpoint_every, int keep, int stream);

}  // namespace ringlet::python
