#include "native/token.hpp"

#include <fmt/format.h>

#include <array>
#include <ringlet/error.hpp>
#include <string_view>

#include "native/saved_token.hpp"

namespace ringlet::native {

namespace {

// No letter that is taken for a digit.
constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
static_assert(kLetters.size() == 32);
constexpr std::size_t kGroups = 7, kGroupLetters = 4;

}  // namespace

std::string check_token(const std::string& source, std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kWhite), text.size());
  const std::size_t end = text.find_last_not_of(kWhite) + 1;
  const std::string_view token = text.substr(begin, end > begin ? end - begin : 0);
  if (token.size() < kLeastTokenCharacters)
    throw InvalidArgument(
        {Errc::invalid_argument, fmt::format("the token in {} has {} characters, at least {} are needed; `ringlet token` makes one", source,
                                             token.size(), kLeastTokenCharacters)});
  return std::string(token);
}

std::string find_token(const std::string& group, const Variables& variables) {
  if (std::string token = read_token({}, variables); !token.empty()) return token;
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

}  // namespace ringlet::native
