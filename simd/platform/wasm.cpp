#include "simd/target_list.hpp"

namespace ringlet::simd {
namespace {

// An engine without vector instructions does not load a module that has them, so there is nothing to ask at run time.
bool always() noexcept { return true; }

constexpr Target kTargets[] = {{"scalar", &kScalarTable, always}, {"wasm", &kWasmTable, always}};

}  // namespace

std::span<const Target> target_list() noexcept { return kTargets; }

}  // namespace ringlet::simd
