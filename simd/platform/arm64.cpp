#include "simd/target_list.hpp"

namespace ringlet::simd {
namespace {

bool always() noexcept { return true; }

constexpr Target kTargets[] = {{"scalar", &kScalarTable, always}, {"neon64", &kNeon64Table, always}};

constexpr std::uint64_t kFlushHalf = 1ull << 19;
constexpr std::uint64_t kRounding = 3ull << 22;  // 0: to nearest
constexpr std::uint64_t kFlush = 1ull << 24;
constexpr std::uint64_t kAlternativeHalf = 1ull << 26;  // another f16, without infinities

std::uint64_t control_register() noexcept {
  std::uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void set_control_register(std::uint64_t value) noexcept { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }

}  // namespace

std::span<const Target> target_list() noexcept { return kTargets; }

FloatEnvironment::FloatEnvironment() noexcept : saved_(control_register()) {
  set_control_register(saved_ & ~(kFlushHalf | kRounding | kFlush | kAlternativeHalf));
}
FloatEnvironment::~FloatEnvironment() { set_control_register(saved_); }

}  // namespace ringlet::simd
