#include "tests/native/failing_allocator.hpp"

#include <openssl/crypto.h>
#include <uv.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> calls{0}, begin{0}, end{0};

bool fails() noexcept {
  const std::uint64_t call = ++calls;
  return call >= begin && call < end;
}

void* allocate(std::size_t bytes) noexcept { return fails() ? nullptr : std::malloc(bytes); }
void* reallocate(void* memory, std::size_t bytes) noexcept { return fails() ? nullptr : std::realloc(memory, bytes); }
void* allocate_zeros(std::size_t count, std::size_t bytes) noexcept { return fails() ? nullptr : std::calloc(count, bytes); }

}  // namespace

void ringlet::test::take_libraries_allocators() noexcept {
  // Where uv cannot grow its table of sockets, which is all that it reallocates for us, it ends the process, and nobody can prevent it.
  const int uv = uv_replace_allocator(allocate, std::realloc, allocate_zeros, std::free);
  const int openssl = CRYPTO_set_mem_functions([](std::size_t bytes, const char*, int) { return allocate(bytes); },
                                               [](void* memory, std::size_t bytes, const char*, int) { return reallocate(memory, bytes); },
                                               [](void* memory, const char*, int) { std::free(memory); });
  if (uv != 0 || openssl != 1) std::abort();
}

void ringlet::test::fail_allocations(std::uint64_t first, std::uint64_t count) noexcept {
  end = 0;
  calls = 0;
  begin = first;
  if (first > 0) end = first + count;
}
std::uint64_t ringlet::test::allocation_calls() noexcept { return calls; }

void* operator new(std::size_t bytes) {
  if (fails()) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
