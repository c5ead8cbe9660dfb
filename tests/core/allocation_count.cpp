#include "tests/core/allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {
ringlet::test::Allocations allocations;
}

ringlet::test::Allocations ringlet::test::allocations_so_far() { return allocations; }

void* operator new(std::size_t bytes) {
  ++allocations.all;
  if (bytes >= ringlet::test::kLargeAllocation) ++allocations.large;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
