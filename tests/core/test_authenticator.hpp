#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ports/authenticator.hpp"
#include "transport/sim/sim_random.hpp"

namespace ringlet::test {

/// For simulations: the same seed gives the same nonces. Its proofs tell tokens and messages apart and withstand nobody.
class TestAuthenticator final : public Authenticator {
 public:
  explicit TestAuthenticator(std::uint64_t seed, std::string token = "") : random_(seed), token_(std::move(token)) {}

  Proof sign(ConstBytes message) override {
    Proof proof{};
    for (std::size_t i = 0; i < proof.size(); ++i) {
      std::uint64_t hash = 14695981039346656037ull + i;
      const auto mix = [&hash](std::byte byte) { hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ull; };
      for (const char c : token_) mix(static_cast<std::byte>(c));
      mix(std::byte{0xff});
      for (const std::byte byte : message) mix(byte);
      proof[i] = static_cast<std::byte>(hash >> 40);
    }
    return proof;
  }
  void fill_random(Bytes out) override {
    for (std::byte& byte : out) byte = static_cast<std::byte>(random_.next());
  }

 private:
  SimRandom random_;
  std::string token_;
};

}  // namespace ringlet::test
