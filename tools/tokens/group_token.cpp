#include "tools/tokens/group_token.hpp"

#include <array>

#include "transport/crypto/strong_token.hpp"

namespace ringlet::tokens {

std::string find_token(const std::string& group, const Variables& variables) {
  if (std::string token = native::read_token({}, variables); !token.empty()) return token;
  return load_token(group, variables).value_or(std::string());
}

std::string make_token(Authenticator& authenticator) {
  std::array<std::byte, kStrongTokenBytes> random{};
  authenticator.fill_random(random);
  return make_strong_token(random);
}

}  // namespace ringlet::tokens
