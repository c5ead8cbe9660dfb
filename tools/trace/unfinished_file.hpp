#pragma once

#include <string>
#include <string_view>

#include "native/output_file.hpp"

namespace ringlet::trace {

/// What `out` is called until it is whole.
std::string name_while_unfinished(const std::string& out);

/// A file while it is made, under another name, which no other process makes meanwhile; of a symbolic link, the file behind it. It is
/// removed unless it becomes whole. What fails throws a `std::runtime_error` that names the file.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& out);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  void write(std::string_view bytes);
  /// Makes it `out`, in place of the file that has that name.
  void finish();

 private:
  [[noreturn]] void refuse(const std::string& why) const;

  const std::string out_;
  native::OutputFile file_;
  bool is_whole_ = false;
};

}  // namespace ringlet::trace
