#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ringlet {

/// The XXH3-128 checksum of bytes that come in pieces.
class Checksum {
 public:
  static constexpr std::size_t kDigits = 32;

  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  /// The checksum, its higher half first.
  using Value = std::array<std::uint64_t, 2>;
  Value value() const;
  /// The same in lower-case hexadecimal, as xxh128sum prints it.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string checksum_of(std::string_view text);

}  // namespace ringlet
