#pragma once

#include <optional>
#include <string>

#include "core/ports/link.hpp"
#include "tools/machines/machine_key.hpp"

namespace ringlet::machines {

/// The part of a machine in a conversation.
enum class Part : std::uint8_t { asks = 1, answers = 2 };

/// How a machine says on a link who it is, as it comes from there.
struct Introduction {
  std::string name;
  std::string public_key, signature;  // as bytes
};

/// Signs the name for this link alone. `group` is the one for whose machines it is meant.
Introduction introduce(const MachineKey& key, Part part, const std::string& group, const std::string& name, const LinkBinding& binding);

/// Returns the key whose owner calls itself so at the other end of this link, or nothing if the signature is of another key, name, part,
/// group or link.
std::optional<PublicKey> proved_key(const Introduction& introduction, Part part, const std::string& group, const LinkBinding& binding);

}  // namespace ringlet::machines
