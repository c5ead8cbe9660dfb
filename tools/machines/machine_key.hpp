#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/ports/authenticator.hpp"
#include "tools/tokens/private_folder.hpp"

namespace ringlet::machines {

using native::Variables;

/// A public key of Ed25519 (RFC 8032): by it others know a machine, whatever its name and address.
using PublicKey = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;

/// Returns what people compare of a key: the first 96 bits of its SHA-256, such as "7f3a-91c2-04be-55d1-e8a0-1b37".
std::string fingerprint(const PublicKey& key);

/// Returns the whole key as 64 hexadecimal digits, and reads it from these.
std::string to_hex(const PublicKey& key);
std::optional<PublicKey> parse_public_key(std::string_view hex);

/// Tells whether the owner of `key` has signed the message.
bool is_signed(const PublicKey& key, ConstBytes message, const Signature& signature);

/// The secret key of this machine, and so of this user here. It is kept in $XDG_CONFIG_HOME/ringlet/machine, by default in ~/.config.
class MachineKey {
 public:
  /// Reads the key. Where there is none, makes one and saves it, so that processes that do this at the same time get the same. Throws
  /// `InvalidArgument` with the path and what to do if the file is damaged, if others may read or replace it, or if it cannot be saved.
  static MachineKey load(const Variables& variables);
  /// Returns where it is kept.
  static std::string path(const Variables& variables);

  /// The key that follows from these random bytes.
  explicit MachineKey(const Key& secret);
  MachineKey(const MachineKey&) = default;
  MachineKey& operator=(const MachineKey&) = default;
  ~MachineKey() { wipe(secret_); }

  const PublicKey& public_key() const noexcept { return public_; }
  Signature sign(ConstBytes message) const;

 private:
  Key secret_;
  PublicKey public_{};
};

}  // namespace ringlet::machines
