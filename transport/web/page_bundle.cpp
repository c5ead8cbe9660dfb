#include "transport/web/page_bundle.hpp"

#include <openssl/evp.h>
#include <utf8.h>

#include <algorithm>
#include <array>
#include <optional>

namespace ringlet::web {

namespace {

constexpr std::string_view kMagic = "RNGLPAGE";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kTagBytes = 16;

template <class Number>
void append_number(std::vector<std::byte>& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(std::byte((number >> (8 * i)) & 0xffU));
}

void append_bytes(std::vector<std::byte>& out, ConstBytes bytes) {
  out.resize(out.size() + bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.end() - static_cast<std::ptrdiff_t>(bytes.size()));
}

ConstBytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Reads from the front, and checks that enough bytes are left. After the first read that fails, all further reads fail.
class Cursor {
 public:
  explicit Cursor(ConstBytes rest) : rest_(rest) {}
  bool intact() const { return intact_; }
  bool at_end() const { return rest_.empty(); }

  ConstBytes bytes(std::uint64_t count) {
    intact_ = intact_ && count <= rest_.size();
    if (!intact_) return {};
    const ConstBytes taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    const ConstBytes taken = bytes(size);
    std::uint64_t value = 0;
    for (std::size_t i = taken.size(); i-- > 0;) value = (value << 8) | std::to_integer<std::uint64_t>(taken[i]);
    return value;
  }
  std::string text(std::uint64_t size) {
    const ConstBytes taken = bytes(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  ConstBytes rest_;
  bool intact_ = true;
};

std::string tag_of(ConstBytes content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  EVP_Digest(content.data(), content.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::string tag;
  for (std::size_t i = 0; i < kTagBytes; ++i)
    for (const int shift : {4, 0}) tag += "0123456789abcdef"[(digest[i] >> shift) & 0xf];
  return tag;
}

bool is_header_text(std::string_view text) {
  for (const char c : text)
    if (c < ' ' || c > '~') return false;
  return !text.empty();
}

Status damaged(const std::string& why) { return {Errc::invalid_argument, "the page bundle is damaged: " + why + "; pack it again"}; }

}  // namespace

bool PageBundle::is_path(std::string_view path) {
  const bool printable = std::none_of(path.begin(), path.end(), [](char c) { return (c >= '\0' && c < ' ') || c == '\x7f'; });
  return printable && !path.empty() && path.front() == '/' && utf8::is_valid(path.begin(), path.end());
}

std::vector<std::byte> PageBundle::pack(const std::vector<PackedFile>& files) {
  std::vector<std::byte> packed;
  append_bytes(packed, bytes_of(kMagic));
  append_number(packed, kVersion);
  append_number(packed, static_cast<std::uint32_t>(files.size()));
  for (const PackedFile& file : files) {
    append_number(packed, static_cast<std::uint32_t>(file.path.size()));
    append_number(packed, static_cast<std::uint32_t>(file.content_type.size()));
    append_number(packed, static_cast<std::uint64_t>(file.plain.size()));
    append_number(packed, static_cast<std::uint64_t>(file.gzip.size()));
    append_bytes(packed, bytes_of(file.path));
    append_bytes(packed, bytes_of(file.content_type));
    append_bytes(packed, file.plain);
    append_bytes(packed, file.gzip);
  }
  return packed;
}

Result<PageBundle> PageBundle::unpack(std::vector<std::byte> packed) {
  PageBundle bundle;
  bundle.packed_ = std::move(packed);
  Cursor cursor(bundle.packed_);
  if (cursor.text(kMagic.size()) != kMagic) return damaged("it does not begin with " + std::string(kMagic));
  if (const auto version = cursor.number(4); version != kVersion) return damaged("its version is " + std::to_string(version));
  const auto count = cursor.number(4);
  for (std::uint64_t index = 0; index < count && cursor.intact(); ++index) {
    const auto path_size = cursor.number(4), type_size = cursor.number(4), plain_size = cursor.number(8), gzip_size = cursor.number(8);
    std::string path = cursor.text(path_size);
    PageFile file;
    file.content_type = cursor.text(type_size);
    file.plain = cursor.bytes(plain_size);
    file.gzip = cursor.bytes(gzip_size);
    if (!cursor.intact()) break;
    if (!is_path(path)) return damaged("file " + std::to_string(index) + " has no proper path");
    if (!is_header_text(file.content_type)) return damaged(path + " has no proper content type");
    file.tag = tag_of(file.plain);
    if (!bundle.files_.emplace(path, std::move(file)).second) return damaged(path + " is in it twice");
  }
  if (!cursor.intact()) return damaged("it ends too early");
  if (!cursor.at_end()) return damaged("it goes on after its last file");
  return Result<PageBundle>(std::move(bundle));
}

const PageFile* PageBundle::find(std::string_view path) const {
  const auto found = files_.find(path == "/" ? "/index.html" : path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace ringlet::web
