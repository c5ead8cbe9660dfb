#include "tools/command/bench_measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <ringlet/gradients.hpp>
#include <vector>

#include "core/base/hash.hpp"
#include "core/base/refuse.hpp"
#include "core/ports/authenticator.hpp"
#include "simd/kernels.hpp"

namespace ringlet::command {

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

/// Returns small whole numbers that differ between ranks and indexes. Their sums over up to 80 ranks are exact in every dtype.
int value_of(int rank, std::size_t index) { return static_cast<int>((index + static_cast<std::size_t>(rank)) % 4); }

/// Writes numbers into elements of `dtype`. A boolean becomes number != 0. The imaginary part is the number plus 1 for each rank added.
class Elements {
 public:
  Elements(DType dtype, std::size_t count) : dtype_(dtype), count_(count), bytes_(count * size_of(dtype)) {}

  /// Sets element i to the sum over `ranks` of their values at `first + i`.
  void fill(const std::vector<int>& ranks, std::size_t first) {
    std::vector<float> numbers(count_);
    for (std::size_t i = 0; i < count_; ++i)
      for (const int rank : ranks) numbers[i] += static_cast<float>(value_of(rank, first + i));
    if (dtype_ == DType::complex64) return fill_complex<float>(numbers, static_cast<float>(ranks.size()));
    if (dtype_ == DType::complex128) return fill_complex<double>(numbers, static_cast<float>(ranks.size()));
    if (dtype_ == DType::f32) return copy(numbers);
    if (const auto cast = simd::find("")->cast(DType::f32, dtype_))
      return cast(bytes_.data(), reinterpret_cast<const std::byte*>(numbers.data()), count_);
    for (std::size_t i = 0; i < count_; ++i) store_integer(i, static_cast<std::uint64_t>(numbers[i]));
  }
  /// Returns the elements of a real dtype.
  std::vector<double> numbers() const {
    std::vector<double> all(count_);
    simd::find("")->cast(dtype_, DType::f64)(reinterpret_cast<std::byte*>(all.data()), bytes_.data(), count_);
    return all;
  }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), std::byte{0}); }
  TensorView view() { return {bytes_.data(), dtype_, count_}; }
  friend bool operator==(const Elements& a, const Elements& b) { return a.bytes_ == b.bytes_; }

 private:
  template <class T>
  void copy(const std::vector<T>& values) {
    std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  template <class Part>
  void fill_complex(const std::vector<float>& numbers, float ranks) {
    std::vector<Part> parts(2 * numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      parts[2 * i] = numbers[i];
      parts[2 * i + 1] = numbers[i] + ranks;
    }
    copy(parts);
  }
  /// Writes little-endian bytes, as on every machine that Ringlet runs on. Narrow dtypes wrap around.
  void store_integer(std::size_t index, std::uint64_t value) {
    if (dtype_ == DType::boolean) value = value != 0;
    std::memcpy(bytes_.data() + index * size_of(dtype_), &value, size_of(dtype_));
  }

  DType dtype_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

/// One size's buffers, and the call that is measured.
class Case {
 public:
  Case(Group& group, const BenchPlan& plan, std::size_t bytes)
      : group_(group),
        plan_(plan),
        per_rank_(input_elements(elements(bytes))),
        input_(plan.dtype, per_rank_),
        output_(plan.dtype, output_elements()) {
    if (plan.wire) averager_.emplace(group, AverageOptions{.communication_type = plan.wire});
  }

  std::size_t bytes() { return std::max(input_.view().bytes(), output_.view().bytes()); }

  bool check() {
    input_.fill({group_.rank()}, 0);
    call();
    if (averager_) return is_mean();
    switch (plan_.operation) {
      case CollectiveKind::all_gather:
        return check_blocks(per_rank_, 0);
      case CollectiveKind::all_to_all:
        return check_blocks(per_rank_ / ranks(), per_rank_ / ranks() * static_cast<std::size_t>(group_.rank()));
      case CollectiveKind::all_reduce:
        return is_sum(input_, per_rank_, all_ranks(), 0);
      case CollectiveKind::broadcast:
        return is_sum(input_, per_rank_, {0}, 0);
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce:
        return is_sum(output_, output_elements(), all_ranks(), first_row());
      default:
        return false;
    }
  }

  void call() {
    if (averager_) {
      averager_->add(input_.view());
      return averager_->finish();
    }
    switch (plan_.operation) {
      case CollectiveKind::all_reduce:
        return group_.all_sum(input_.view());
      case CollectiveKind::reduce_scatter:
        return group_.sum_scatter(input_.view(), output_.view());
      case CollectiveKind::all_gather:
        return group_.all_gather(input_.view(), output_.view());
      case CollectiveKind::broadcast:
        return group_.broadcast(input_.view(), 0);
      case CollectiveKind::reduce:
        return group_.reduce(ReduceOp::sum, input_.view(), output_.view(), 0);
      case CollectiveKind::all_to_all:
        return group_.all_to_all(input_.view(), output_.view());
      default:
        return;
    }
  }

  /// Clears the input, because repeated sums would overflow and take the slow paths of the arithmetic.
  void clear() { input_.clear(); }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(group_.size()); }
  std::size_t elements(std::size_t bytes) const { return std::max<std::size_t>(1, bytes / size_of(plan_.dtype)); }
  std::size_t first_row() const {
    if (plan_.operation != CollectiveKind::reduce_scatter) return 0;
    const auto rank = static_cast<std::size_t>(group_.rank());
    return per_rank_ / ranks() * rank + std::min(rank, per_rank_ % ranks());
  }
  std::size_t input_elements(std::size_t wanted) const {
    if (plan_.operation == CollectiveKind::all_gather) return wanted / ranks();
    if (plan_.operation == CollectiveKind::all_to_all) return std::max<std::size_t>(1, wanted / ranks()) * ranks();
    return wanted;
  }
  std::size_t output_elements() const {
    switch (plan_.operation) {
      case CollectiveKind::all_gather:
        return per_rank_ * ranks();
      case CollectiveKind::all_to_all:
        return per_rank_;
      case CollectiveKind::reduce:
        return group_.rank() == 0 ? per_rank_ : 0;
      case CollectiveKind::reduce_scatter:
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
  /// Tells whether `result` is the sum of these ranks' inputs, starting at their element `first`.
  bool is_sum(const Elements& result, std::size_t count, const std::vector<int>& of_ranks, std::size_t first) const {
    Elements expected(plan_.dtype, count);
    expected.fill(of_ranks, first);
    return result == expected;
  }
  /// By how much a number may be rounded in a block of numbers up to `largest`, whose scale is a power of two.
  static double half_step(BlockFormat format, double largest) {
    const double steps = format == BlockFormat::int4 ? 7 : 127;
    return std::exp2(std::ceil(std::log2(largest / steps))) / 2;
  }
  /// Tells whether the input has become the mean, rounded for the network, and has the same bits on all ranks.
  bool is_mean() {
    // The ranks' numbers are up to 3. In blocks each rank rounds its share of the mean, and the mean is rounded once more.
    const double share = 3.0 / static_cast<double>(ranks());
    const auto format = plan_.wire->blocks();
    const double tolerance = format ? static_cast<double>(ranks()) * half_step(*format, share) + half_step(*format, 3) : 1.0 / 64;
    const std::vector<double> means = input_.numbers();
    bool right = true;
    for (std::size_t i = 0; i < means.size(); ++i) {
      double sum = 0;
      for (const int rank : all_ranks()) sum += value_of(rank, i);
      right = right && std::abs(means[i] - sum / static_cast<double>(ranks())) <= tolerance;
    }
    const TensorView mine = input_.view();
    const std::array<std::uint64_t, 1> hash{hash_of({reinterpret_cast<const char*>(mine.data()), mine.bytes()})};
    std::vector<std::uint64_t> hashes(ranks());
    group_.all_gather(std::span(hash), std::span(hashes));
    return right && std::count(hashes.begin(), hashes.end(), hash[0]) == static_cast<std::ptrdiff_t>(hashes.size());
  }
  /// Tells whether the output has one block of each rank's input, starting at its element `first`.
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
  std::optional<GradientAverager> averager_;
};

double max_over_ranks(Group& group, double value) {
  group.all_max(std::span(&value, 1));
  return value;
}

double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

}  // namespace

void check_size(const BenchPlan& plan, const Group& group) {
  if (plan.ranks && *plan.ranks != group.size())
    refuse(fmt::format("--ranks {}: this is a rank of a group of {} already, which is what it measures; leave the option out", *plan.ranks,
                       group.size()));
}

Row measure(Group& group, const BenchPlan& plan, std::size_t bytes) {
  constexpr double kBatchMicroseconds = 10'000;
  constexpr std::size_t kMaxCalls = 2000, kFewestBatches = 7, kMaxBatches = 100'000;
  Case measured(group, plan, bytes);
  Row row;
  row.checked = max_over_ranks(group, measured.check() ? 0 : 1) == 0;
  measured.clear();
  for (int i = 0; i < 2; ++i) measured.call();

  // All ranks must take the same number of calls, so decisions about time are made from the slowest rank's time.
  const int probes = bytes <= (64 << 10) ? 20 : 2;
  group.barrier();
  auto start = Clock::now();
  for (int i = 0; i < probes; ++i) measured.call();
  const double estimate = std::max(0.05, max_over_ranks(group, microseconds_since(start) / probes));
  const auto calls = static_cast<std::size_t>(std::clamp(kBatchMicroseconds / estimate, 1.0, static_cast<double>(kMaxCalls)));
  const double wanted = plan.seconds * 1e6 / (estimate * static_cast<double>(calls));
  const auto batches = static_cast<std::size_t>(std::clamp(wanted, static_cast<double>(kFewestBatches), static_cast<double>(kMaxBatches)));

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

double bus_factor(CollectiveKind operation, int ranks) {
  const double n = ranks;
  if (operation == CollectiveKind::all_reduce) return 2 * (n - 1) / n;
  return operation == CollectiveKind::broadcast || operation == CollectiveKind::reduce ? 1 : (n - 1) / n;
}

std::string size_text(std::size_t bytes) {
  for (const auto& [unit, factor] : {std::pair<const char*, std::size_t>{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}})
    if (bytes >= factor && bytes % factor == 0) return fmt::format("{} {}", bytes / factor, unit);
  return fmt::format("{} B", bytes);
}

LinkNames links_of(Group& group) {
  constexpr std::array<std::string_view, 2> kMedia{"memory", "tcp"};
  constexpr std::array<std::string_view, 2> kCiphers{name_of(CipherSuite::aes256_gcm), name_of(CipherSuite::chacha20_poly1305)};
  std::array<float, 4> seen{};
  for (const LinkInfo& link : group.link_info())
    for (std::size_t i = 0; i < 2; ++i) {
      if (link.medium == kMedia[i]) seen[i] = 1;
      if (link.cipher == kCiphers[i]) seen[2 + i] = 1;
    }
  group.all_max(std::span(seen));
  const auto name = [&](const std::array<std::string_view, 2>& names, std::size_t first) -> std::string_view {
    if (seen[first] > 0 && seen[first + 1] > 0) return "mixed";
    return seen[first] > 0 ? names[0] : seen[first + 1] > 0 ? names[1] : "none";
  };
  return {name(kMedia, 0), name(kCiphers, 2)};
}

std::string LinkNames::text() const { return cipher == "none" ? std::string(medium) : fmt::format("{}, {}", medium, cipher); }

}  // namespace ringlet::command
