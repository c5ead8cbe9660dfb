#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

/// The keys that follow from an SRP agreement and all messages before it, as proto/pairing.proto defines. If the sides agreed on different
/// numbers, or received different messages, all their keys differ.
class SessionKeys {
 public:
  SessionKeys(const Secret& shared, std::string transcript);

  std::string newcomer_proof() const;
  std::string host_proof() const;
  std::string receipt_proof(std::string_view sealed_token) const;
  /// Call this once, since the key must not seal two texts.
  std::string seal(const Secret& token) const;
  std::optional<Secret> open(std::string_view sealed_token) const;

 private:
  Secret derive(std::string_view role) const;
  std::string prove(std::string_view role, std::string_view more) const;

  Secret extracted_;
  std::string transcript_;
};

/// Compares in constant time.
bool same_proof(std::string_view one, std::string_view other);

}  // namespace ringlet::pairing
