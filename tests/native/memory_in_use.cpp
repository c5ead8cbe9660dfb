#include "tests/native/memory_in_use.hpp"

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> in_use = 0, most = 0;

std::size_t size_of(void* memory) {
#ifdef __APPLE__
  return malloc_size(memory);
#else
  return malloc_usable_size(memory);
#endif
}

void release(void* memory) {
  in_use -= size_of(memory);
  std::free(memory);
}

}  // namespace

std::size_t ringlet::test::memory_in_use() { return in_use; }
std::size_t ringlet::test::most_memory_in_use() { return most; }
void ringlet::test::forget_most_memory_in_use() { most = in_use.load(); }

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = in_use += size_of(memory);
  for (std::size_t before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
  return memory;
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
