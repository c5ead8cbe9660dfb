#include "tests/native/failing_allocator.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> calls{0}, begin{0}, end{0};

}  // namespace

void ringlet::test::fail_allocations(std::uint64_t first, std::uint64_t count) noexcept {
  end = 0;
  calls = 0;
  begin = first;
  if (first > 0) end = first + count;
}
std::uint64_t ringlet::test::allocation_calls() noexcept { return calls; }

void* operator new(std::size_t bytes) {
  const std::uint64_t call = ++calls;
  if (call >= begin && call < end) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
