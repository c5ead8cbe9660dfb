#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/result.hpp"

namespace ringlet::web {

/// A file of the page, with its plain and its compressed form, as given to pack().
struct PackedFile {
  std::string path;  // as is_path() wants it; "/index.html" is also found as "/"
  std::string content_type;
  std::vector<std::byte> plain;
  std::vector<std::byte> gzip;  // empty where compressing saves nothing
};

/// A file in the form in which it is served. The spans belong to the bundle.
struct PageFile {
  std::string content_type;
  ConstBytes plain;
  ConstBytes gzip;
  std::string tag;  // an identifier of the content, for the ETag header
};

/// All files of the worker page.
///
/// The packed form is little-endian: "RNGLPAGE", version u32 = 1, number of files u32; then for each file the sizes of its path (u32),
/// content type (u32), plain form (u64) and gzip form (u64), followed by these four themselves.
class PageBundle {
 public:
  /// A bundle without files.
  PageBundle() = default;
  PageBundle(PageBundle&&) = default;
  PageBundle& operator=(PageBundle&&) = default;
  PageBundle(const PageBundle&) = delete;
  PageBundle& operator=(const PageBundle&) = delete;

  /// Fails with `invalid_argument`, whose text names the mistake, if `packed` does not have the form that pack() makes.
  static Result<PageBundle> unpack(std::vector<std::byte> packed);
  static std::vector<std::byte> pack(const std::vector<PackedFile>& files);

  /// The most bytes that a rank takes in packed form.
  static constexpr std::size_t kMaxPackedBytes = 256 << 20;
  /// Tells whether a browser can ask for this path: printable UTF-8 that begins with a slash, without percent-encoding.
  static bool is_path(std::string_view path);

  /// Returns the file with exactly this path; null if there is none. The path is not normalised, so it cannot lead elsewhere.
  const PageFile* find(std::string_view path) const;
  bool empty() const { return files_.empty(); }

 private:
  std::vector<std::byte> packed_;
  std::map<std::string, PageFile, std::less<>> files_;
};

}  // namespace ringlet::web
