// Ringlet in bench/compare.
#include <ringlet/ringlet.hpp>

#include "measure.hpp"

int main(int count, char** arguments) {
  try {
    const compare::Request request = compare::read_request(count, arguments);
    ringlet::Group world = ringlet::init({.strict = true});
    compare::Library library;
    library.name = "ringlet";
    library.version = COMPARE_VERSION;
    library.rank = world.rank();
    library.ranks = world.size();
    library.barrier = [&] { world.barrier(); };
    library.largest = [&](double value) {
      world.all_max(std::span(&value, 1));
      return value;
    };
    library.all_reduce = [&](float* values, std::size_t elements) { world.all_sum(std::span(values, elements)); };
    library.reduce_scatter = [&](const float* input, float* output, std::size_t part) {
      world.sum_scatter(std::span(input, part * static_cast<std::size_t>(world.size())), std::span(output, part));
    };
    library.all_gather = [&](const float* input, float* output, std::size_t part) {
      world.all_gather(std::span(input, part), std::span(output, part * static_cast<std::size_t>(world.size())));
    };
    compare::Measurement(library, request).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "measure_ringlet: %s\n", error.what());
    return 1;
  }
}
