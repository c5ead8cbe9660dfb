#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ringlet/outer.hpp>
#include <vector>

#include "native/outer/fragment.hpp"
#include "native/outer/pace.hpp"

namespace ringlet::test {

/// What one rank does in the inner step of this number: the rank pulls its parameters towards values of its own.
inline double moved(double value, int rank, std::uint64_t number, std::size_t element) {
  const auto target = static_cast<double>((number * 7919 + static_cast<std::uint64_t>(rank) * 104'729 + element * 31) % 1009);
  return value + 0.05 * (target / 1009 - value);
}

/// How many samples it uses.
inline double samples_of(int rank, std::uint64_t number) {
  return static_cast<double>((static_cast<std::uint64_t>(rank) * 5 + number) % 7 + 1);
}

/// A training of the method once more, in f64, with all ranks in one place.
struct OuterReference {
  OuterReference(const Tree& parameters, const OuterTrainerOptions& o, int ranks, std::size_t elements)
      : options(o), ranges(native::cut_fragments(parameters, o.fragments)) {
    for (const auto& [begin, end] : ranges) {
      std::size_t first = 0, count = 0;
      for (std::size_t i = 0; i < begin; ++i) first += parameters[i].values.count();
      for (std::size_t i = begin; i < end; ++i) count += parameters[i].values.count();
      elements_of.push_back({first, first + count});
    }
    shared.assign(elements, 0.5);
    momentum.assign(elements, 0);
    own.assign(static_cast<std::size_t>(ranks), shared);
    since.assign(own.size(), std::vector<double>(ranges.size()));
  }

  /// `trains` says whether a rank takes part in an average, `steps_of` how many inner steps it takes before that; unset: all.
  void run(std::uint64_t steps, const std::function<bool(int rank, std::uint64_t average)>& trains,
           const std::function<int(int rank, std::uint64_t average)>& steps_of = {}) {
    const int interval = options.inner_steps / options.fragments;
    const std::uint64_t averages = steps / static_cast<std::uint64_t>(interval);
    for (std::uint64_t average = 0; average < averages; ++average) {
      const bool is_last = average + 1 == averages;
      const auto planned = [&](int rank) { return steps_of ? steps_of(rank, average) : interval; };
      const auto overlap = [&](int rank) { return is_last ? 0 : native::overlapped_steps(planned(rank), options.overlap, interval); };
      const std::size_t turn = average % ranges.size();
      std::vector<std::size_t> in_turn{turn};
      for (std::size_t i = 1; is_last && i < ranges.size(); ++i) in_turn.push_back((turn + i) % ranges.size());
      const std::uint64_t first = average * static_cast<std::uint64_t>(interval);
      const auto alive = [&](int rank) { return trains(rank, average); };
      const auto take_all = [&](const auto& begin, const auto& end) {
        for (int rank = 0; rank < static_cast<int>(own.size()); ++rank)
          if (alive(rank))
            for (int i = begin(rank); i < end(rank); ++i) take(rank, first + static_cast<std::uint64_t>(i));
      };
      const auto before_sending = [&](int rank) { return planned(rank) - overlap(rank); };
      take_all([](int) { return 0; }, before_sending);
      const auto sent = own;
      const auto sent_samples = since;
      take_all(before_sending, planned);
      double total = 0;
      for (std::size_t rank = 0; rank < own.size(); ++rank)
        if (alive(static_cast<int>(rank))) total += sent_samples[rank][turn];
      for (const std::size_t f : in_turn)
        for (std::size_t i = elements_of[f].begin; i < elements_of[f].end; ++i) {
          double gradient = 0;
          for (std::size_t rank = 0; rank < own.size(); ++rank)
            if (alive(static_cast<int>(rank))) gradient += sent_samples[rank][turn] / total * (shared[i] - sent[rank][i]);
          momentum[i] = options.momentum * momentum[i] + gradient;
          const double update = options.momentum == 0 ? gradient
                                : options.nesterov    ? gradient + options.momentum * momentum[i]
                                                      : momentum[i];
          shared[i] -= options.learning_rate.at(average) * update;
          const double keeps = options.overlap > 0 && !is_last ? options.mixing : 0;
          for (auto& values : own) values[i] = keeps * values[i] + (1 - keeps) * shared[i];
        }
      for (std::size_t rank = 0; rank < own.size(); ++rank)
        for (const std::size_t f : in_turn) since[rank][f] -= sent_samples[rank][f];
    }
  }

  double furthest(const Tree& parameters) const {
    double most = 0;
    std::size_t next = 0;
    for (const Leaf& leaf : parameters)
      for (std::size_t i = 0; i < leaf.values.count(); ++i, ++next)
        most = std::max(most, std::abs(static_cast<double>(reinterpret_cast<const float*>(leaf.values.data())[i]) - shared[next]));
    return most;
  }

  const OuterTrainerOptions options;
  const std::vector<native::LeafRange> ranges;
  std::vector<native::LeafRange> elements_of;  // by fragment
  std::vector<double> shared, momentum;
  std::vector<std::vector<double>> own;    // by rank
  std::vector<std::vector<double>> since;  // samples, by rank and fragment

 private:
  void take(int rank, std::uint64_t number) {
    const auto index = static_cast<std::size_t>(rank);
    for (std::size_t element = 0; element < shared.size(); ++element)
      own[index][element] = moved(own[index][element], rank, number, element);
    for (double& samples : since[index]) samples += samples_of(rank, number);
  }
};

}  // namespace ringlet::test
