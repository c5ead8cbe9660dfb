#include "native/votes.hpp"

#include <algorithm>

namespace ringlet::native {

namespace {

constexpr std::int64_t kKeptResults = 64;

}  // namespace

void Votes::call(bool own) {
  under_way_ = true;
  own_ = own;
}

void Votes::set_result(bool value) {
  append(value);
  answer_ = value;
  under_way_ = false;
}

void Votes::append(bool value) {
  results_ = results_ << 1 | (value ? 1U : 0U);
  ++settled_;
}

int Votes::blame(std::span<const Told> told) {
  constexpr std::int64_t kMostCalls = std::int64_t{1} << 62;
  const auto cannot_be = [](const Told& one) { return one[0] < 0 || one[0] > kMostCalls; };
  const auto wrong = std::find_if(told.begin(), told.end(), cannot_be);
  return wrong == told.end() ? -1 : static_cast<int>(wrong - told.begin());
}

void Votes::settle(std::span<const Told> told, std::uint32_t epoch) {
  epoch_ = epoch;
  const Told most = *std::max_element(told.begin(), told.end(), [](const Told& one, const Told& other) { return one[0] < other[0]; });
  const auto is_in_next = [&](const Told& one) { return one[0] == most[0] && one[2] != 0; };
  const std::int64_t own_call = settled_ + 1;
  settled_ = most[0];
  results_ = static_cast<std::uint64_t>(most[1]);
  if (std::any_of(told.begin(), told.end(), is_in_next))
    append(std::all_of(told.begin(), told.end(), [&](const Told& one) { return is_in_next(one) && one[3] != 0; }));
  const std::int64_t age = settled_ - own_call;
  // A call that began after this rank had told counts for nobody, and its number is that of the next one.
  if (under_way_) answer_ = age >= 0 && age < kKeptResults && (results_ >> age & 1) != 0;
  under_way_ = false;
}

}  // namespace ringlet::native
