#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "transport/local/shared_memory.hpp"

namespace ringlet::local {

namespace {

/// Its setting with which the system promises no more memory than it has: a byte that has no page yet may then be a SIGBUS.
constexpr const char* kOvercommitPath = "/proc/sys/vm/overcommit_memory";
constexpr char kNoOvercommit = '2';

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Maps all of the memory; an empty span on failure.
Bytes map_shared(int descriptor, std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return {};
  // A child that outlives both processes would keep the memory.
  if (::madvise(at, bytes, MADV_DONTFORK) == 0) return {static_cast<std::byte*>(at), bytes};
  ::munmap(at, bytes);
  return {};
}

bool promises_only_what_it_has() {
  const UniqueFd setting(::open(kOvercommitPath, O_RDONLY | O_CLOEXEC));
  char value = kNoOvercommit;
  return !setting || ::read(setting.get(), &value, 1) != 1 || value == kNoOvercommit;
}

/// Where the process may not write files of this size, growing one would send it a SIGXFSZ.
bool may_be_so_large(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

bool resize(int descriptor, std::size_t bytes) {
  const auto size = static_cast<off_t>(bytes);
  // Most of a machine's pairs of ranks have little to say to each other, so elsewhere pages are taken when they are used.
  return promises_only_what_it_has() ? ::posix_fallocate(descriptor, 0, size) == 0 : ::ftruncate(descriptor, size) == 0;
}

}  // namespace

SharedMemory::~SharedMemory() { ::munmap(bytes_.data(), bytes_.size()); }

std::unique_ptr<SharedMemory> make_shared_memory(std::size_t bytes) {
  UniqueFd memory(::memfd_create("ringlet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || !may_be_so_large(bytes) || !resize(memory.get(), bytes)) return nullptr;
  if (::fcntl(memory.get(), F_ADD_SEALS, kFixedSize) != 0) return nullptr;
  const Bytes mapped = map_shared(memory.get(), bytes);
  if (mapped.empty()) return nullptr;
  return std::make_unique<SharedMemory>(mapped, std::move(memory));
}

std::unique_ptr<SharedMemory> open_shared_memory(std::uint64_t process, int descriptor, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  // It could be a device or a pipe, at which opening would block or have an effect.
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return nullptr;
  const UniqueFd memory(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!memory || ::fstat(memory.get(), &facts) != 0 || std::cmp_not_equal(facts.st_size, bytes)) return nullptr;
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize) return nullptr;
  const Bytes mapped = map_shared(memory.get(), bytes);
  return mapped.empty() ? nullptr : std::make_unique<SharedMemory>(mapped);
}

}  // namespace ringlet::local
