// How each library's program measures, so that all do it alike, and the line that rank 0 prints of a size. measure.py is the same in
// Python.
//
// Of each size one call is checked. Then batches of calls, one after the other, with a barrier before each batch; a batch lasts about 10
// ms, or one call, and counts in the slowest rank's time. Sizes are as nccl-tests has them: the buffer of an all_reduce, the whole input of
// a reduce_scatter, the whole output of an all_gather.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace compare {

/// What a program offers, in the calls of its library. All ranks make the same calls.
struct Library {
  std::string name, version;
  int rank = 0, ranks = 1;
  std::function<void()> barrier;
  std::function<double(double)> largest;  // of all ranks' values
  std::function<void(float* values, std::size_t count)> all_reduce;
  std::function<void(const float* input, float* output, std::size_t count_of_output)> reduce_scatter, all_gather;
};

struct Request {
  std::string operation = "all_reduce";
  std::vector<std::size_t> sizes;  // in bytes
  double seconds = 0.3;            // of batches, for each size
};

/// Reads `OPERATION SECONDS SIZE...`, which compare.py passes; anything else ends the program.
inline Request read_request(int count, char** arguments) {
  Request request;
  if (count < 4) {
    std::fprintf(stderr, "usage: %s OPERATION SECONDS BYTES...\n", arguments[0]);
    std::exit(2);
  }
  request.operation = arguments[1];
  request.seconds = std::atof(arguments[2]);
  for (int i = 3; i < count; ++i) request.sizes.push_back(std::strtoull(arguments[i], nullptr, 10));
  return request;
}

/// What rank `rank` contributes at `index`; the sums of up to 1,000 ranks are exact in f32.
inline float contribution(int rank, std::size_t index) { return static_cast<float>((rank + 1) * static_cast<int>(index % 5 + 1)); }
inline float sum_of_contributions(int ranks, std::size_t index) {
  return static_cast<float>(ranks * (ranks + 1) / 2 * static_cast<int>(index % 5 + 1));
}

/// In the first calls with a buffer libraries register it, or gather it into huge pages.
inline constexpr int kWarmUpCalls = 8;

class Measurement {
 public:
  Measurement(const Library& library, const Request& request) : library_(library), request_(request) {
    const std::size_t largest = *std::max_element(request.sizes.begin(), request.sizes.end()) / sizeof(float);
    input_.resize(largest + 1);
    output_.resize(largest + 1);
  }

  void run() {
    for (const std::size_t bytes : request_.sizes) {
      const std::size_t count = bytes / sizeof(float), part = count / static_cast<std::size_t>(library_.ranks);
      if (request_.operation == "all_reduce")
        measure(bytes, all_reduce_is_right(count), [&] { library_.all_reduce(input_.data(), count); });
      else if (request_.operation == "reduce_scatter" && library_.reduce_scatter && part > 0)
        measure(bytes, reduce_scatter_is_right(part), [&] { library_.reduce_scatter(input_.data(), output_.data(), part); });
      else if (request_.operation == "all_gather" && library_.all_gather && part > 0)
        measure(bytes, all_gather_is_right(part), [&] { library_.all_gather(input_.data(), output_.data(), part); });
    }
  }

 private:
  static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

  void contribute(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) input_[i] = contribution(library_.rank, i);
  }
  bool all_reduce_is_right(std::size_t count) {
    contribute(count);
    library_.all_reduce(input_.data(), count);
    bool right = true;
    for (std::size_t i = 0; i < count; ++i) right &= input_[i] == sum_of_contributions(library_.ranks, i);
    std::fill(input_.begin(), input_.end(), 0.0f);  // repeated sums of these stay finite
    return right;
  }
  bool reduce_scatter_is_right(std::size_t part) {
    contribute(part * static_cast<std::size_t>(library_.ranks));
    library_.reduce_scatter(input_.data(), output_.data(), part);
    const std::size_t first = part * static_cast<std::size_t>(library_.rank);
    bool right = true;
    for (std::size_t i = 0; i < part; ++i) right &= output_[i] == sum_of_contributions(library_.ranks, first + i);
    return right;
  }
  bool all_gather_is_right(std::size_t part) {
    contribute(part);
    library_.all_gather(input_.data(), output_.data(), part);
    bool right = true;
    for (std::size_t i = 0; i < part * static_cast<std::size_t>(library_.ranks); ++i)
      right &= output_[i] == contribution(static_cast<int>(i / part), i % part);
    return right;
  }

  void measure(std::size_t bytes, bool right, const std::function<void()>& call) {
    const int probes = bytes <= 65'536 ? 20 : 2;
    for (int i = 0; i < kWarmUpCalls; ++i) call();
    library_.barrier();
    double begin = now();
    for (int i = 0; i < probes; ++i) call();
    const double estimate = library_.largest((now() - begin) / probes);
    const int calls = std::clamp(static_cast<int>(0.010 / estimate), 1, 2'000);
    const int batches = std::clamp(static_cast<int>(request_.seconds / (estimate * calls)), 5, 60);
    std::vector<double> times;
    for (int batch = 0; batch < batches; ++batch) {
      library_.barrier();
      begin = now();
      for (int i = 0; i < calls; ++i) call();
      times.push_back(library_.largest((now() - begin) / calls));
    }
    std::sort(times.begin(), times.end());
    const bool all_right = library_.largest(right ? 0.0 : 1.0) == 0.0;
    if (library_.rank != 0) return;
    std::printf(
        "{\"library\": \"%s\", \"version\": \"%s\", \"operation\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"median_us\": %.3f, "
        "\"least_us\": %.3f, \"right\": %s}\n",
        library_.name.c_str(), library_.version.c_str(), request_.operation.c_str(), library_.ranks, bytes, times[times.size() / 2] * 1e6,
        times.front() * 1e6, all_right ? "true" : "false");
    std::fflush(stdout);
  }

  const Library& library_;
  const Request& request_;
  std::vector<float> input_, output_;
};

}  // namespace compare
