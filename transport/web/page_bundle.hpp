#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/result.hpp"

namespace ringlet::web {

/// A file of the page, as it is packed.
struct PackedFile {
  std::string path;  // "/index.html"; "/" finds it, too
  std::string content_type;
  std::vector<std::byte> plain;
  std::vector<std::byte> gzip;  // empty where it would save nothing
};

/// A file as it is served; the spans are the bundle's.
struct PageFile {
  std::string content_type;
  ConstBytes plain;
  ConstBytes gzip;
  std::string tag;  // of the content, for ETag
};

/// All files of the worker page.
///
/// Packed, little-endian: "RNGLPAGE", version u32 = 1, number of files u32; then for each file the sizes of its path (u32), content type
/// (u32), plain (u64) and gzip (u64) form, and these four, one after the other.
class PageBundle {
 public:
  /// No files.
  PageBundle() = default;
  PageBundle(PageBundle&&) = default;
  PageBundle& operator=(PageBundle&&) = default;
  PageBundle(const PageBundle&) = delete;
  PageBundle& operator=(const PageBundle&) = delete;

  /// `invalid_argument` with what is wrong where `packed` is not what pack() makes.
  static Result<PageBundle> unpack(std::vector<std::byte> packed);
  static std::vector<std::byte> pack(const std::vector<PackedFile>& files);

  /// The file with exactly this path; null where there is none. Nothing is decoded or made shorter first, so no path leads elsewhere.
  const PageFile* find(std::string_view path) const;
  bool empty() const { return files_.empty(); }

 private:
  std::vector<std::byte> packed_;
  std::map<std::string, PageFile, std::less<>> files_;
};

}  // namespace ringlet::web
