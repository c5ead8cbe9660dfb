#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>

#include "native/huge_pages.hpp"

namespace ringlet::native {

namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, which C libraries before glibc 2.37 do not name
/// Larger ones (512 MiB where pages have 64 KiB) are seldom to be had, and take long to fill.
constexpr std::size_t kLargestPage = 16 << 20;
/// Where the system has no free huge pages, it makes them by moving others' memory. The time of a processor tells that on a busy machine,
/// too.
constexpr std::chrono::milliseconds kLongWork{100}, kLongWait{2000};

/// 0 where the machine's owner does not want any.
std::size_t find_page_bytes() {
  std::ifstream enabled("/sys/kernel/mm/transparent_hugepage/enabled"), size("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
  std::string allowed;
  std::getline(enabled, allowed);
  std::size_t bytes = 0;
  size >> bytes;
  if (allowed.empty() || allowed.find("[never]") != std::string::npos || bytes > kLargestPage) return 0;
  return (bytes & (bytes - 1)) == 0 ? bytes : 0;
}

std::chrono::nanoseconds time_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

bool gather_into_huge_pages(ConstBytes memory) {
  const std::size_t page = find_page_bytes();
  if (page == 0) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = (address + page - 1) & ~(page - 1), end = (address + memory.size()) & ~(page - 1);
  if (begin >= end) return true;
  const auto work = time_of(CLOCK_THREAD_CPUTIME_ID), wait = time_of(CLOCK_MONOTONIC);
  const bool gathered = ::madvise(reinterpret_cast<void*>(begin), end - begin, kCollapse) == 0;
  // What cannot be moved now, or not at all, stays as it is.
  if (!gathered && (errno == ENOMEM || errno == EBUSY)) return false;
  return time_of(CLOCK_THREAD_CPUTIME_ID) - work < kLongWork && time_of(CLOCK_MONOTONIC) - wait < kLongWait;
}

}  // namespace ringlet::native
