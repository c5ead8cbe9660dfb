#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

#include "transport/local/huge_pages.hpp"

namespace ringlet::local {

namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, which C libraries before glibc 2.37 do not name
constexpr std::size_t kStepBytes = 16 << 20;
/// Of a step, which takes some 25 ms where the system has free huge pages. It may have to make them by moving others' memory.
constexpr std::chrono::milliseconds kLongStep{250};

const std::string kSettings = "/sys/kernel/mm/transparent_hugepage/";

/// 0 where the machine's owner does not want any.
std::size_t find_page_bytes() {
  std::string allowed;
  std::getline(std::ifstream(kSettings + "enabled"), allowed);
  std::size_t bytes = 0;
  std::ifstream(kSettings + "hpage_pmd_size") >> bytes;
  const bool is_allowed = !allowed.empty() && allowed.find("[never]") == std::string::npos;
  return is_allowed && (bytes & (bytes - 1)) == 0 ? bytes : 0;
}

}  // namespace

bool gather_into_huge_pages(ConstBytes memory) {
  static const std::size_t page = find_page_bytes();
  if (page == 0) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = (address + memory.size()) & ~(page - 1);
  for (std::uintptr_t at = (address + page - 1) & ~(page - 1); at < end;) {
    const std::size_t bytes = std::min<std::size_t>(end - at, std::max(page, kStepBytes));
    const auto begin = std::chrono::steady_clock::now();
    // Where it fails, the memory stays as it is.
    ::madvise(reinterpret_cast<void*>(at), bytes, kCollapse);
    if (std::chrono::steady_clock::now() - begin > kLongStep) return false;
    at += bytes;
  }
  return true;
}

}  // namespace ringlet::local
