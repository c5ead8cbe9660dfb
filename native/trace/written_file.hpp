#pragma once

#include <string>
#include <string_view>

namespace ringlet::native {

/// An open file that is written from its start to its end. The first failure is kept, and what comes after it is not written. One thread
/// at a time.
class WrittenFile {
 public:
  /// No file.
  WrittenFile() = default;
  /// Takes over an open descriptor.
  explicit WrittenFile(int descriptor) noexcept : descriptor_(descriptor) {}
  /// Closes the file.
  ~WrittenFile();
  WrittenFile(WrittenFile&& other) noexcept;
  WrittenFile& operator=(WrittenFile&& other) noexcept;

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
