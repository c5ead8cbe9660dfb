#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/pairing/message.hpp"
#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

// SRP-6a by Botan. Numbers are kNumberBytes long, big-endian. Both sides get the same secret only if both know the code. Neither side
// learns from the numbers alone whether that is so, and nor does a listener.

/// The side that has the code's verifier.
class SrpHost {
 public:
  /// `salt` has kSaltBytes bytes.
  SrpHost(const Secret& code, std::string_view salt);
  ~SrpHost();
  SrpHost(const SrpHost&) = delete;
  SrpHost& operator=(const SrpHost&) = delete;

  /// Returns B.
  const std::string& number() const noexcept { return number_; }
  /// Returns S, computed from the other side's A. Returns nothing if A is 0 or not below the group's prime, since S could be predicted
  /// then. Call this once.
  std::optional<Secret> agree(std::string_view number);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
  std::string number_;
};

struct SrpAnswer {
  std::string number;  // A
  Secret shared;       // S
};

/// Answers on the side that was told the code; `number` is B. Returns nothing if B is 0 or not below the group's prime.
std::optional<SrpAnswer> answer_srp(const Secret& code, std::string_view salt, std::string_view number);

}  // namespace ringlet::pairing
