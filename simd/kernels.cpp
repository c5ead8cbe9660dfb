#include "simd/kernels.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "simd/target_list.hpp"

namespace ringlet::simd {
namespace {

constexpr std::size_t number_of(DType dtype) noexcept { return static_cast<std::size_t>(dtype); }

/// The targets that this CPU can run. Pointers into it stay valid until the process ends.
class Available {
 public:
  Available() noexcept {
    for (const Target& target : target_list())
      if (target.runs_here() && count_ < kMost) {
        pointers_[count_] = &kernels_[count_].emplace(target.name, *target.table);
        ++count_;
      }
  }
  std::span<const Kernels* const> pointers() const noexcept { return std::span(pointers_).first(count_); }

 private:
  static constexpr std::size_t kMost = 8;

  std::size_t count_ = 0;
  std::array<std::optional<Kernels>, kMost> kernels_;
  std::array<const Kernels*, kMost> pointers_{};
};

}  // namespace

ReduceFn Kernels::reduce(DType dtype, ReduceOp op) const noexcept { return table_->reduce[number_of(dtype)][static_cast<std::size_t>(op)]; }
ScaleFn Kernels::multiply(DType dtype) const noexcept { return table_->multiply[number_of(dtype)]; }
ScaleFn Kernels::divide(DType dtype) const noexcept { return table_->divide[number_of(dtype)]; }
CastFn Kernels::cast(DType from, DType to) const noexcept { return table_->cast[number_of(from)][number_of(to)]; }
FoldFn Kernels::sum_of_squares(DType dtype) const noexcept { return table_->sum_of_squares[number_of(dtype)]; }
FoldFn Kernels::abs_max(DType dtype) const noexcept { return table_->abs_max[number_of(dtype)]; }
MapFn Kernels::canonical_nan(DType dtype) const noexcept { return table_->canonical_nan[number_of(dtype)]; }
BlocksFn Kernels::encode(BlockFormat format) const noexcept { return table_->encode[static_cast<std::size_t>(format)]; }
BlocksFn Kernels::decode(BlockFormat format) const noexcept { return table_->decode[static_cast<std::size_t>(format)]; }
BlocksLeaveFn Kernels::left_by(BlockFormat format) const noexcept { return table_->left_by[static_cast<std::size_t>(format)]; }
UpdateFn Kernels::update(DType dtype, UpdateRule rule) const noexcept {
  return table_->update[number_of(dtype)][static_cast<std::size_t>(rule)];
}

std::span<const Kernels* const> available() noexcept {
  static const Available kAvailable;
  return kAvailable.pointers();
}

const Kernels* find(std::string_view name) noexcept {
  const auto all = available();
  if (name.empty()) return all.back();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Kernels* kernels) { return kernels->name() == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace ringlet::simd
