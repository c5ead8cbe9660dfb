#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "native/setting.hpp"

namespace ringlet {
class UniqueFd;
}  // namespace ringlet

namespace ringlet::native {

/// A descriptor that whoever started this process has opened for it, and the numbers of what it stands for. A program's own children have
/// the variable, too, and there the descriptor may be closed, or stand for something else.
struct GivenDescriptor {
  int number = -1;
  std::uint64_t device = 0, inode = 0;

  /// A duplicate for this process alone: what it starts inherits neither. Empty where what was given is not here, or no descriptor is left.
  UniqueFd duplicate() const;
};

/// What a variable says of a descriptor that is open here, for a child that inherits it at the same number. Nothing where the system does
/// not tell.
std::optional<std::string> describe_descriptor(int number);

/// The same read back. Throws `InvalidArgument` where it is something else.
GivenDescriptor parse_descriptor(const Setting& setting);

}  // namespace ringlet::native
