#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

/// What follows from an agreement and everything that was said before it, as proto/pairing.proto defines. Where the sides agreed on
/// different numbers, or heard different words, nothing of theirs is the same.
class SessionKeys {
 public:
  SessionKeys(const Secret& shared, std::string transcript);

  std::string newcomer_proof() const;
  std::string host_proof() const;
  std::string receipt_proof(std::string_view sealed_token) const;
  /// Once: the key must not seal two texts.
  std::string seal(const Secret& token) const;
  std::optional<Secret> open(std::string_view sealed_token) const;

 private:
  Secret derive(std::string_view role) const;
  std::string prove(std::string_view role, std::string_view more) const;

  Secret extracted_;
  std::string transcript_;
};

/// In constant time.
bool same_proof(std::string_view one, std::string_view other);

}  // namespace ringlet::pairing
