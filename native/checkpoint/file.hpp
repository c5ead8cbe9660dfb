#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace ringlet::native {

/// The number of bytes that are read or written at a time; a multiple of every element's size.
inline constexpr std::size_t kBlockBytes = 4u << 20;

/// An open file. Every failure is an `IoError` that names the file and the reason.
class File {
 public:
  /// Opens a file for writing, which must not exist yet.
  static File create(const std::filesystem::path& path);
  /// Opens a regular file for reading. Anything else, such as a directory, a FIFO or a device, is refused.
  static File open(const std::filesystem::path& path);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const;
  void write(std::span<const std::byte> bytes);
  /// Fills `bytes` from `offset` on; a file that ends before is an error.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Writes the file through to the disk, then closes it.
  void finish();

 private:
  File(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::filesystem::path path_;
};

/// Writes a directory's entries (files created or renamed in it) through to the disk.
void sync_directory(const std::filesystem::path& path);
/// Creates and syncs the directories of the path that are missing.
void make_directories(const std::filesystem::path& path);
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// Writes a new file with this content, and syncs it.
void write_file(const std::filesystem::path& path, const std::string& text);
/// Throws for a file longer than `limit`.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit);

[[noreturn]] void throw_io_error(const std::filesystem::path& path, const std::string& what);

}  // namespace ringlet::native
