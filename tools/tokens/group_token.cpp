#include "tools/tokens/group_token.hpp"

#include <array>
#include <string_view>

namespace ringlet::tokens {

namespace {

// The alphabet leaves out letters that look like digits.
constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
static_assert(kLetters.size() == 32);
constexpr std::size_t kGroups = 7, kGroupLetters = 4;

}  // namespace

std::string find_token(const std::string& group, const Variables& variables) {
  if (std::string token = native::read_token({}, variables); !token.empty()) return token;
  return load_token(group, variables).value_or(std::string());
}

std::string make_token(Authenticator& authenticator) {
  std::array<std::byte, kGroups * kGroupLetters> random{};
  authenticator.fill_random(random);
  std::string token;
  for (std::size_t i = 0; i < random.size(); ++i) {
    if (i > 0 && i % kGroupLetters == 0) token += '-';
    token += kLetters[static_cast<std::size_t>(random[i]) % kLetters.size()];
  }
  return token;
}

}  // namespace ringlet::tokens
