#include "simd/target_list.hpp"

namespace ringlet::simd {
namespace {

bool always() noexcept { return true; }

constexpr Target kTargets[] = {{"scalar", &kScalarTable, always}};

}  // namespace

std::span<const Target> target_list() noexcept { return kTargets; }

}  // namespace ringlet::simd
