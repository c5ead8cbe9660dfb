#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"

namespace ringlet {

/// Reading the memory of other processes of this machine, where the system allows it: it asks for the same rights as a debugger does.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// What this process is called by others that read its memory; never 0.
  virtual std::uint64_t own_process() const = 0;
  /// Fills `into`, then `then`, from these addresses of a process; `then` is read after all of `into`. False where any of it cannot be
  /// read: then the contents of both are undefined. Does not block.
  virtual bool read(std::uint64_t process, std::uint64_t from, std::span<const Bytes> into, std::uint64_t then_from, Bytes then) = 0;
};

}  // namespace ringlet
