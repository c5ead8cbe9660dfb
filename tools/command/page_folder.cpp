#include "tools/command/page_folder.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/printable.hpp"
#include "transport/web/http_answer.hpp"
#include "transport/web/page_bundle.hpp"

namespace ringlet::command {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kContentTypes{{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".wasm", "application/wasm"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/plain; charset=utf-8"},
}};

std::string content_type_of(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  const auto* const found =
      std::find_if(kContentTypes.begin(), kContentTypes.end(), [&](const auto& type) { return type.first == extension; });
  return std::string(found == kContentTypes.end() ? "application/octet-stream" : found->second);
}

/// Returns the path at which a browser asks for the file.
std::string path_of(const std::filesystem::path& file, const std::string& folder) {
  std::string path = "/" + std::filesystem::relative(file, folder).generic_string();
  if (!web::PageBundle::is_path(path))
    throw std::runtime_error(
        fmt::format("browsers cannot ask for '{}': its name has to be UTF-8 without control characters", printable(file.string())));
  if (path == web::UpgradeRules{}.path)
    throw std::runtime_error(fmt::format("browsers cannot ask for '{}': at {} they join the group", file.string(), path));
  return path;
}

void check_size(std::uintmax_t packed_bytes, const std::string& culprit) {
  constexpr std::size_t kMost = web::PageBundle::kMaxPackedBytes;
  if (packed_bytes > kMost)
    throw std::runtime_error(
        fmt::format("'{}' makes it too much: all files and their gzip copies together may have {} MiB", culprit, kMost >> 20));
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> content(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file) throw std::runtime_error(fmt::format("'{}' cannot be read", path.string()));
  return content;
}

/// Returns the compressed bytes, or nothing if they would not be shorter.
std::vector<std::byte> gzip(std::span<const std::byte> plain) {
  constexpr int kGzipWindow = 15 + 16;  // zlib's notation for the gzip format
  constexpr int kMemoryLevel = 9;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::vector<std::byte> zipped(deflateBound(&stream, plain.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(zipped.data());
  stream.avail_out = static_cast<uInt>(zipped.size());
  const bool complete = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  zipped.resize(stream.total_out);
  deflateEnd(&stream);
  return complete && zipped.size() < plain.size() ? zipped : std::vector<std::byte>{};
}

}  // namespace

std::vector<std::byte> pack_page_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(fs::path(folder) / "index.html", error))
    throw std::runtime_error(fmt::format("'{}' is no page: there is no index.html in it", folder));
  std::vector<web::PackedFile> files;
  std::uintmax_t total = 0;
  const auto add_bytes = [&total](std::uintmax_t bytes, const fs::path& file) {
    total += bytes;
    check_size(total, file.string());
  };
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->path().filename().string().front() == '.') {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file()) continue;
    web::PackedFile file;
    file.path = path_of(entry->path(), folder);
    add_bytes(entry->file_size(), entry->path());
    file.content_type = content_type_of(entry->path());
    file.plain = read_file(entry->path());
    file.gzip = gzip(file.plain);
    add_bytes(file.gzip.size(), entry->path());
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& one, const auto& other) { return one.path < other.path; });
  std::vector<std::byte> packed = web::PageBundle::pack(files);
  check_size(packed.size(), folder);
  return packed;
}

}  // namespace ringlet::command
