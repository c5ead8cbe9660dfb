#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "transport/local/shared_memory.hpp"

namespace ringlet::local {

namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Closes the descriptor unless it is released.
class OpenDescriptor {
 public:
  explicit OpenDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~OpenDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenDescriptor(const OpenDescriptor&) = delete;
  OpenDescriptor& operator=(const OpenDescriptor&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

/// Maps all of the memory; an empty span on failure.
Bytes map_shared(int descriptor, std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return {};
  // A child that outlives both processes would keep the memory.
  if (::madvise(at, bytes, MADV_DONTFORK) == 0) return {static_cast<std::byte*>(at), bytes};
  ::munmap(at, bytes);
  return {};
}

}  // namespace

SharedMemory::~SharedMemory() {
  ::munmap(bytes_.data(), bytes_.size());
  close_descriptor();
}

void SharedMemory::close_descriptor() {
  if (const int descriptor = std::exchange(descriptor_, -1); descriptor >= 0) ::close(descriptor);
}

std::unique_ptr<SharedMemory> make_shared_memory(std::size_t bytes) {
  OpenDescriptor memory(::memfd_create("ringlet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.get() < 0) return nullptr;
  // The pages are taken now: where there are none, there is no shared memory, instead of a SIGBUS at the first byte.
  if (::posix_fallocate(memory.get(), 0, static_cast<off_t>(bytes)) != 0) return nullptr;
  if (::fcntl(memory.get(), F_ADD_SEALS, kFixedSize) != 0) return nullptr;
  const Bytes mapped = map_shared(memory.get(), bytes);
  if (mapped.empty()) return nullptr;
  return std::make_unique<SharedMemory>(mapped, memory.release());
}

std::unique_ptr<SharedMemory> open_shared_memory(std::uint64_t process, int descriptor, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  // It could be a device or a pipe, at which opening would block or have an effect.
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return nullptr;
  const OpenDescriptor memory(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (memory.get() < 0 || ::fstat(memory.get(), &facts) != 0 || std::cmp_not_equal(facts.st_size, bytes)) return nullptr;
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize) return nullptr;
  const Bytes mapped = map_shared(memory.get(), bytes);
  return mapped.empty() ? nullptr : std::make_unique<SharedMemory>(mapped);
}

}  // namespace ringlet::local
