#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ringlet::native {

/// Why this is the name of no file: "it is a directory". Nothing where it is a file's, or still free.
std::optional<std::string> find_obstacle(const std::string& file);
/// Where a file of this name is, behind symbolic links to one that is there.
std::string behind_links(const std::string& file);

/// Opens a file to be written from its start, which is locked (flock) until it is closed, in forked processes too. Returns -1 and errno
/// where that fails; then the file is as it was, with EWOULDBLOCK where another process has locked it. Where the file system knows no
/// locks, it is opened without one.
int open_alone(const std::string& path);

/// An open file that is written from its start to its end. The first failure is kept, and what comes after it is not written. One thread
/// at a time.
class OutputFile {
 public:
  /// No file.
  OutputFile() = default;
  /// Takes over an open descriptor.
  explicit OutputFile(int descriptor) noexcept : descriptor_(descriptor) {}
  /// Closes the file.
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  bool is_open() const noexcept { return descriptor_ >= 0; }
  /// Returns false where that failed, now or before; error() then says why.
  bool write(std::string_view bytes);
  /// Asks for what a system tells only when a file is closed, and keeps it open, with its locks; as write().
  bool settle();
  /// Closes the file, which may tell of what could not be written; as write().
  bool close();
  /// Empty where all has been written.
  const std::string& error() const noexcept { return error_; }

 private:
  int descriptor_ = -1;
  std::string error_;
};

}  // namespace ringlet::native
