#include "tests/native/memory_in_use.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> in_use = 0, most = 0;

void release(void* memory) {
  in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

std::size_t ringlet::test::memory_in_use() { return in_use; }
std::size_t ringlet::test::most_memory_in_use() { return most; }

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = in_use += malloc_usable_size(memory);
  for (std::size_t before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
  return memory;
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
