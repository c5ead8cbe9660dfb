#include "tools/pairing/pairing_code.hpp"

#include <openssl/rand.h>

#include <array>
#include <vector>

#include "core/base/check.hpp"

namespace ringlet::pairing {

void fill_random(Bytes out) {
  // Without randomness the code could be predicted, so the process stops instead.
  RINGLET_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) == 1);
}

Secret make_code(std::size_t digits, const FillRandom& random) {
  // The values 250 to 255 are rejected, since they would make the digits 0 to 5 likelier.
  constexpr unsigned kUnbiased = 250;
  std::array<char, kMaxDigits> code{};
  for (std::size_t place = 0; place < digits;) {
    std::array<std::byte, 1> byte{};
    random(byte);
    const auto number = static_cast<unsigned>(byte[0]);
    if (number < kUnbiased) code[place++] = static_cast<char>('0' + number % 10);
  }
  Secret secret(std::string_view(code.data(), digits));
  OPENSSL_cleanse(code.data(), code.size());
  return secret;
}

std::string spaced_code(const Secret& code) {
  const std::size_t half = (code.view().size() + 1) / 2;
  return std::string(code.view().substr(0, half)) + " " + std::string(code.view().substr(half));
}

std::optional<Secret> read_code(std::string_view typed) {
  constexpr std::string_view kBetween = " -\t\r\n";
  std::array<char, kMaxDigits> code{};
  std::size_t digits = 0;
  bool is_code = true;
  for (const char letter : typed) {
    if (kBetween.find(letter) != std::string_view::npos) continue;
    if (letter < '0' || letter > '9' || digits == kMaxDigits) {
      is_code = false;
      break;
    }
    code[digits++] = letter;
  }
  Secret secret(std::string_view(code.data(), digits));
  OPENSSL_cleanse(code.data(), code.size());
  if (!is_code || digits < kLeastDigits) return std::nullopt;
  return secret;
}

}  // namespace ringlet::pairing
