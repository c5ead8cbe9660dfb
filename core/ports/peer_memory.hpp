#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"

namespace ringlet {

/// Reads the memory of other processes of this machine. The system allows that to processes which may also debug the other one.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// The number by which other processes read this one's memory; never 0.
  virtual std::uint64_t own_process() const = 0;
  /// Fills `into` and then `then` from these addresses of a process; `then` is read after all of `into`. Returns false where any of it
  /// cannot be read; the contents of both are undefined then. Does not block.
  virtual bool read(std::uint64_t process, std::uint64_t from, std::span<const Bytes> into, std::uint64_t then_from, Bytes then) = 0;
};

}  // namespace ringlet
