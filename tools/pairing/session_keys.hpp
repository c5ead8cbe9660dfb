#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/pairing/message.hpp"
#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

/// The keys that follow from an SRP agreement and all messages before it, as proto/pairing.proto defines. If the sides agreed on different
/// numbers, or received different messages, all their keys differ.
class SessionKeys {
 public:
  SessionKeys(const Secret& shared, std::string transcript);

  std::string newcomer_proof() const;
  std::string host_proof() const;
  /// `sealed` is sealed_token and both sealed_machine, one behind the other.
  std::string receipt_proof(std::string_view sealed) const;
  /// Call each of these once, since a key must not seal two texts.
  std::string seal(const Secret& token) const;
  std::string seal_host(const PairedMachine& host) const;
  std::string seal_newcomer(const PairedMachine& newcomer) const;
  std::optional<Secret> open(std::string_view sealed_token) const;
  /// Return nothing if that was not sealed by the other side, or if the name is not the one that it gave in clear.
  std::optional<PairedMachine> open_host(std::string_view sealed, const std::string& name) const;
  std::optional<PairedMachine> open_newcomer(std::string_view sealed, const std::string& name) const;

 private:
  std::string seal(std::string_view role, std::string_view text) const;
  std::optional<Secret> open(std::string_view role, std::string_view sealed) const;
  std::optional<PairedMachine> open_machine(std::string_view role, std::string_view sealed, const std::string& name) const;
  Secret derive(std::string_view role) const;
  std::string prove(std::string_view role, std::string_view more) const;

  Secret extracted_;
  std::string transcript_;
};

/// Compares in constant time.
bool same_proof(std::string_view one, std::string_view other);

}  // namespace ringlet::pairing
