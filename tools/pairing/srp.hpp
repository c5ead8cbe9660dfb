#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/pairing/message.hpp"
#include "tools/pairing/secret.hpp"

namespace ringlet::pairing {

// SRP-6a by Botan. Numbers are kNumberBytes long, big-endian. What the two sides agree on is the same only where both know the code;
// neither learns from it alone whether that is so, and nobody can tell from the numbers.

/// The side that has the code's verifier.
class SrpHost {
 public:
  /// `salt`: kSaltBytes.
  SrpHost(const Secret& code, std::string_view salt);
  ~SrpHost();
  SrpHost(const SrpHost&) = delete;
  SrpHost& operator=(const SrpHost&) = delete;

  /// B.
  const std::string& number() const noexcept { return number_; }
  /// S, from the other side's A. Nothing where that is 0 or not below the group's prime, by which S could be foretold. Once.
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

/// The side that was told the code; `number` is B. Nothing where that is 0 or not below the group's prime.
std::optional<SrpAnswer> answer_srp(const Secret& code, std::string_view salt, std::string_view number);

}  // namespace ringlet::pairing
