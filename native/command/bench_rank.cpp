#include "native/command/bench_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ringlet/group.hpp>

#include "native/command/subcommand.hpp"
#include "simd/kernels.hpp"

namespace ringlet::command {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 6> kNames{"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all"};

double microseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

/// Small whole numbers that differ between ranks and indexes; sums over up to 80 ranks are exact in every dtype.
int value_of(int rank, std::size_t index) { return static_cast<int>((index + static_cast<std::size_t>(rank)) % 4); }

/// Writes `values` into elements of `dtype`; booleans become value != 0, the imaginary part value + 1 per rank that was added.
class Elements {
 public:
  Elements(DType dtype, std::size_t count) : dtype_(dtype), count_(count), bytes_(count * size_of(dtype)) {}

  /// Element i becomes what the ranks' values at `first + i` are, added over `ranks`.
  void fill(const std::vector<int>& ranks, std::size_t first) {
    std::vector<float> numbers(count_);
    for (std::size_t i = 0; i < count_; ++i)
      for (const int rank : ranks) numbers[i] += static_cast<float>(value_of(rank, first + i));
    if (dtype_ == DType::complex64) return fill_complex(numbers, static_cast<float>(ranks.size()));
    if (dtype_ == DType::f32) return copy(numbers);
    if (const auto cast = simd::find("")->cast(DType::f32, dtype_))
      return cast(bytes_.data(), reinterpret_cast<const std::byte*>(numbers.data()), count_);
    for (std::size_t i = 0; i < count_; ++i) store_integer(i, static_cast<std::uint64_t>(numbers[i]));
  }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), std::byte{0}); }
  TensorView view() { return {bytes_.data(), dtype_, count_}; }
  friend bool operator==(const Elements& a, const Elements& b) { return a.bytes_ == b.bytes_; }

 private:
  template <class T>
  void copy(const std::vector<T>& values) {
    std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  void fill_complex(const std::vector<float>& numbers, float ranks) {
    std::vector<float> parts(2 * numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      parts[2 * i] = numbers[i];
      parts[2 * i + 1] = numbers[i] + ranks;
    }
    copy(parts);
  }
  /// Little-endian, as every machine that Ringlet runs on; narrow dtypes wrap.
  void store_integer(std::size_t index, std::uint64_t value) {
    if (dtype_ == DType::boolean) value = value != 0;
    std::memcpy(bytes_.data() + index * size_of(dtype_), &value, size_of(dtype_));
  }

  DType dtype_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

/// One size's buffers and the call that is measured.
class Case {
 public:
  Case(Group& group, const BenchPlan& plan, std::size_t bytes)
      : group_(group),
        plan_(plan),
        per_rank_(input_elements(elements(bytes))),
        input_(plan.dtype, per_rank_),
        output_(plan.dtype, output_elements()) {}

  std::size_t bytes() { return std::max(input_.view().bytes(), output_.view().bytes()); }

  bool check() {
    input_.fill({group_.rank()}, 0);
    call();
    switch (plan_.operation) {
      case BenchOperation::all_gather:
        return check_blocks(per_rank_, 0);
      case BenchOperation::all_to_all:
        return check_blocks(per_rank_ / ranks(), per_rank_ / ranks() * static_cast<std::size_t>(group_.rank()));
      case BenchOperation::all_reduce:
        return is_sum(input_, per_rank_, all_ranks(), 0);
      case BenchOperation::broadcast:
        return is_sum(input_, per_rank_, {0}, 0);
      case BenchOperation::reduce_scatter:
      case BenchOperation::reduce:
        return is_sum(output_, output_elements(), all_ranks(), first_row());
    }
    return false;
  }

  void call() {
    switch (plan_.operation) {
      case BenchOperation::all_reduce:
        return group_.all_sum(input_.view());
      case BenchOperation::reduce_scatter:
        return group_.sum_scatter(input_.view(), output_.view());
      case BenchOperation::all_gather:
        return group_.all_gather(input_.view(), output_.view());
      case BenchOperation::broadcast:
        return group_.broadcast(input_.view(), 0);
      case BenchOperation::reduce:
        return group_.reduce(ReduceOp::sum, input_.view(), output_.view(), 0);
      case BenchOperation::all_to_all:
        return group_.all_to_all(input_.view(), output_.view());
    }
  }

  /// Repeated sums would overflow and leave the fast paths of the arithmetic.
  void clear() { input_.clear(); }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(group_.size()); }
  std::size_t elements(std::size_t bytes) const { return std::max<std::size_t>(1, bytes / size_of(plan_.dtype)); }
  std::size_t first_row() const {
    if (plan_.operation != BenchOperation::reduce_scatter) return 0;
    const auto rank = static_cast<std::size_t>(group_.rank());
    return per_rank_ / ranks() * rank + std::min(rank, per_rank_ % ranks());
  }
  std::size_t input_elements(std::size_t wanted) const {
    if (plan_.operation == BenchOperation::all_gather) return wanted / ranks();
    if (plan_.operation == BenchOperation::all_to_all) return std::max<std::size_t>(1, wanted / ranks()) * ranks();
    return wanted;
  }
  std::size_t output_elements() const {
    switch (plan_.operation) {
      case BenchOperation::all_gather:
        return per_rank_ * ranks();
      case BenchOperation::all_to_all:
        return per_rank_;
      case BenchOperation::reduce:
        return group_.rank() == 0 ? per_rank_ : 0;
      case BenchOperation::reduce_scatter:
        return per_rank_ / ranks() + (static_cast<std::size_t>(group_.rank()) < per_rank_ % ranks() ? 1 : 0);
      default:
        return 0;
    }
  }
  std::vector<int> all_ranks() const {
    std::vector<int> all(ranks());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  /// Whether `result` is what these ranks' inputs from element `first` on add up to.
  bool is_sum(const Elements& result, std::size_t count, const std::vector<int>& of_ranks, std::size_t first) const {
    Elements expected(plan_.dtype, count);
    expected.fill(of_ranks, first);
    return result == expected;
  }
  /// Whether the output is a block of each rank's input, from its element `first` on.
  bool check_blocks(std::size_t block_elements, std::size_t first) {
    bool same = true;
    for (std::size_t r = 0; r < ranks(); ++r) {
      Elements block(plan_.dtype, block_elements);
      block.fill({static_cast<int>(r)}, first);
      const TensorView expected = block.view();
      same = same &&
             (expected.bytes() == 0 || std::memcmp(output_.view().data() + r * expected.bytes(), expected.data(), expected.bytes()) == 0);
    }
    return same;
  }

  Group& group_;
  const BenchPlan& plan_;
  const std::size_t per_rank_;
  Elements input_;
  Elements output_;
};

struct Row {
  std::size_t bytes = 0;
  double median_us = 0, min_us = 0, p99_us = 0;
  bool checked = false;
};

double max_over_ranks(Group& group, double value) {
  group.all_max(std::span(&value, 1));
  return value;
}

double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

Row measure(Group& group, const BenchPlan& plan, std::size_t bytes) {
  constexpr double kBatchMicroseconds = 10'000;
  constexpr std::size_t kMostCalls = 2000, kFewestBatches = 7, kMostBatches = 100'000;
  Case measured(group, plan, bytes);
  Row row;
  row.checked = max_over_ranks(group, measured.check() ? 0 : 1) == 0;
  measured.clear();
  for (int i = 0; i < 2; ++i) measured.call();

  // All ranks must take the same number of calls: what is decided from a time is decided from the slowest rank's.
  const int probes = bytes <= (64 << 10) ? 20 : 2;
  group.barrier();
  auto start = Clock::now();
  for (int i = 0; i < probes; ++i) measured.call();
  const double estimate = std::max(0.05, max_over_ranks(group, microseconds_since(start) / probes));
  const auto calls = static_cast<std::size_t>(std::clamp(kBatchMicroseconds / estimate, 1.0, static_cast<double>(kMostCalls)));
  const double wanted = plan.seconds * 1e6 / (estimate * static_cast<double>(calls));
  const auto batches = static_cast<std::size_t>(std::clamp(wanted, static_cast<double>(kFewestBatches), static_cast<double>(kMostBatches)));

  std::vector<double> samples, single;
  single.reserve(batches * calls);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    group.barrier();
    start = Clock::now();
    auto before = start;
    for (std::size_t i = 0; i < calls; ++i) {
      measured.call();
      const auto after = Clock::now();
      single.push_back(std::chrono::duration<double, std::micro>(after - before).count());
      before = after;
    }
    samples.push_back(max_over_ranks(group, microseconds_since(start) / static_cast<double>(calls)));
  }
  row.bytes = measured.bytes();
  row.median_us = quantile(samples, 0.5);
  row.min_us = samples.front();
  row.p99_us = quantile(single, 0.99);
  return row;
}

double bus_factor(BenchOperation operation, int ranks) {
  const double n = ranks;
  if (operation == BenchOperation::all_reduce) return 2 * (n - 1) / n;
  return operation == BenchOperation::broadcast || operation == BenchOperation::reduce ? 1 : (n - 1) / n;
}

std::string size_text(std::size_t bytes) {
  for (const auto& [unit, factor] : {std::pair<const char*, std::size_t>{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}})
    if (bytes >= factor && bytes % factor == 0) return fmt::format("{} {}", bytes / factor, unit);
  return fmt::format("{} B", bytes);
}

/// Where there was something to choose, each rank says what it took.
void print_chosen_links(const Group& group) {
  for (const LinkInfo& link : group.link_info())
    if (link.tried > 0) {
      const std::string measured =
          link.bytes_per_second > 0
              ? fmt::format("{:.3f} ms, {:.0f} Mbit/s", std::chrono::duration<double, std::milli>(link.round_trip).count(),
                            link.bytes_per_second * 8e-6)
              : std::string("not measured");
      fmt::print("link {} - {}: {} ({}) - {} ({}), {}, {}, the best of {}\n", group.rank(), link.peer, link.own_address,
                 link.own_interface.empty() ? "?" : link.own_interface, link.peer_address,
                 link.peer_interface.empty() ? "?" : link.peer_interface, link.kind, measured, link.tried);
    }
  std::fflush(stdout);
}

/// Over all ranks.
std::string_view links_of(Group& group) {
  const std::string_view own = group.links();
  std::array<float, 2> seen{own == "memory" || own == "mixed" ? 1.0F : 0.0F, own == "tcp" || own == "mixed" ? 1.0F : 0.0F};
  group.all_max(std::span(seen));
  if (seen[0] > 0) return seen[1] > 0 ? "mixed" : "memory";
  return seen[1] > 0 ? "tcp" : "none";
}

void print(const BenchPlan& plan, const Group& group, std::string_view links, const Row& row) {
  const std::string_view operation = name_of(plan.operation);
  const double algbw = static_cast<double>(row.bytes) / row.median_us / 1e3;
  const double busbw = algbw * bus_factor(plan.operation, group.size());
  const std::string algorithm(group.size() > 1 ? group.algorithm(operation, row.bytes) : "none");
  if (plan.json) {
    const nlohmann::ordered_json line{{"op", operation},
                                      {"dtype", ringlet::name_of(plan.dtype)},
                                      {"ranks", group.size()},
                                      {"bytes", row.bytes},
                                      {"median_us", row.median_us},
                                      {"min_us", row.min_us},
                                      {"p99_us", row.p99_us},
                                      {"algbw_GBs", algbw},
                                      {"busbw_GBs", busbw},
                                      {"algorithm", algorithm},
                                      {"links", links},
                                      {"checked", row.checked}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{:>10} {:>12.1f} {:>12.1f} {:>12.1f} {:>11.3f} {:>11.3f}  {:<9} {}\n", size_text(row.bytes), row.median_us, row.min_us,
               row.p99_us, algbw, busbw, algorithm, row.checked ? "right" : "WRONG");
  }
  std::fflush(stdout);
}

}  // namespace

std::string_view name_of(BenchOperation operation) noexcept { return kNames[static_cast<std::size_t>(operation)]; }

std::optional<BenchOperation> find_bench_operation(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<BenchOperation>(i);
  return std::nullopt;
}

int run_bench_rank(const BenchPlan& plan) {
  try {
    Group group = init();
    const bool prints = group.rank() == 0;
    const std::string_view links = links_of(group);
    if (!plan.json) print_chosen_links(group);
    if (prints && !plan.json) {
      fmt::print("{}, {}, {}, links: {}\n{:>10} {:>12} {:>12} {:>12} {:>11} {:>11}  {:<9} {}\n", name_of(plan.operation),
                 ringlet::name_of(plan.dtype), group.describe_placement(), links, "bytes", "median us", "min us", "p99 us", "algbw GB/s",
                 "busbw GB/s", "algorithm", "result");
    }
    bool right = true;
    for (const std::size_t bytes : plan.sizes) {
      const Row row = measure(group, plan, bytes);
      right = right && row.checked;
      if (prints) print(plan, group, links, row);
    }
    if (!right && prints) fmt::print(stderr, "ringlet bench: a result is wrong\n");
    return right ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "ringlet bench: {}\n", error.what());
    return error.status().code() == Errc::invalid_argument ? kUsageError : 1;
  }
}

}  // namespace ringlet::command
