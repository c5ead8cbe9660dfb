#include <sys/uio.h>
#include <unistd.h>

#include <array>

#include "transport/local/peer_memory.hpp"

namespace ringlet::local {

namespace {

constexpr std::size_t kMaxParts = 8;

class LinuxPeerMemory final : public PeerMemory {
 public:
  std::uint64_t own_process() const override { return static_cast<std::uint64_t>(::getpid()); }

  bool read(std::uint64_t process, std::uint64_t from, std::span<const Bytes> into, std::uint64_t then_from, Bytes then) override {
    if (into.size() >= kMaxParts) return false;
    std::array<iovec, kMaxParts> local;
    std::size_t parts = 0, bytes = 0;
    for (const Bytes part : into) {
      local[parts++] = {part.data(), part.size()};
      bytes += part.size();
    }
    local[parts++] = {then.data(), then.size()};
    // The kernel reads the mark after the data because it reads these parts in this order.
    const std::array<iovec, 2> remote{iovec{reinterpret_cast<void*>(from), bytes}, iovec{reinterpret_cast<void*>(then_from), then.size()}};
    const auto count = ::process_vm_readv(static_cast<pid_t>(process), local.data(), parts, remote.data(), remote.size(), 0);
    return count >= 0 && static_cast<std::size_t>(count) == bytes + then.size();
  }
};

}  // namespace

std::unique_ptr<PeerMemory> open_peer_memory() { return std::make_unique<LinuxPeerMemory>(); }

}  // namespace ringlet::local
