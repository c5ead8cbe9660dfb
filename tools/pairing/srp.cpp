#include "tools/pairing/srp.hpp"

#include <botan/auto_rng.h>
#include <botan/dl_group.h>
#include <botan/exceptn.h>
#include <botan/srp6.h>

#include "tools/pairing/srp_parameters.hpp"

namespace ringlet::pairing {

namespace {

std::string to_bytes(const Botan::BigInt& number) {
  std::string bytes(kNumberBytes, '\0');
  for (std::size_t place = 0; place < kNumberBytes; ++place) bytes[kNumberBytes - 1 - place] = static_cast<char>(number.byte_at(place));
  return bytes;
}

Botan::BigInt from_bytes(std::string_view bytes) { return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}; }

std::vector<std::uint8_t> to_salt(std::string_view salt) { return {salt.begin(), salt.end()}; }

Secret to_secret(const Botan::SymmetricKey& key) {
  return Secret(std::string_view(reinterpret_cast<const char*>(key.begin()), key.length()));
}

/// The code in the form that Botan needs. It is wiped on destruction.
class PlainCode {
 public:
  explicit PlainCode(const Secret& code) : text(code.view()) {}
  PlainCode(const PlainCode&) = delete;
  PlainCode& operator=(const PlainCode&) = delete;
  ~PlainCode() { OPENSSL_cleanse(text.data(), text.size()); }
  std::string text;
};

}  // namespace

struct SrpHost::Session {
  Botan::SRP6_Server_Session srp;
};

SrpHost::SrpHost(const Secret& code, std::string_view salt) : session_(std::make_unique<Session>()) {
  Botan::AutoSeeded_RNG random;
  const PlainCode plain(code);
  number_ = to_bytes(session_->srp.step1(make_srp_verifier(plain.text, to_salt(salt)), kSrpGroup, kSrpHash, random));
}

SrpHost::~SrpHost() = default;

std::optional<Secret> SrpHost::agree(std::string_view number) {
  if (!session_ || number.size() != kNumberBytes) return std::nullopt;
  const std::unique_ptr<Session> session = std::move(session_);
  // Botan reports numbers out of range only by exceptions.
  try {
    return to_secret(session->srp.step2(from_bytes(number)));
  } catch (const Botan::Exception&) {
    return std::nullopt;
  }
}

std::optional<SrpAnswer> answer_srp(const Secret& code, std::string_view salt, std::string_view number) {
  if (number.size() != kNumberBytes) return std::nullopt;
  Botan::AutoSeeded_RNG random;
  const PlainCode plain(code);
  try {
    const auto [own, key] = Botan::srp6_client_agree(kSrpName, plain.text, kSrpGroup, kSrpHash, to_salt(salt), from_bytes(number), random);
    return SrpAnswer{to_bytes(own), to_secret(key)};
  } catch (const Botan::Exception&) {
    return std::nullopt;
  }
}

}  // namespace ringlet::pairing
