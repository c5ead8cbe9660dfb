#include "native/token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ringlet/error.hpp>
#include <string_view>

#include "transport/crypto/strong_token.hpp"

namespace ringlet::native {

std::string check_token(const std::string& source, std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kWhite), text.size());
  const std::size_t end = text.find_last_not_of(kWhite) + 1;
  const std::string_view token = text.substr(begin, end > begin ? end - begin : 0);
  if (token.empty())
    throw InvalidArgument({Errc::invalid_argument, fmt::format("the token in {} is empty; `ringlet token` makes one", source)});
  if (token.size() < kLeastTokenCharacters)
    throw InvalidArgument(
        {Errc::invalid_argument, fmt::format("the token in {} has {} characters, at least {} are needed; `ringlet token` makes one", source,
                                             token.size(), kLeastTokenCharacters)});
  return strong_token(token);
}

}  // namespace ringlet::native
