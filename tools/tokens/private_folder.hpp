#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "native/environment.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::tokens {

using native::Variables;

enum class Replace : bool { no, yes };

/// How the errors of a folder speak of its files.
struct FolderWords {
  const char* contents;  // "tokens"
  const char* exposed;   // what to do, behind "others may read 'FILE', so "
  const char* too_long;  // what to do, behind "'FILE' is longer than N bytes, so "
};

/// A folder for files of this user, in Ringlet's own configuration. No other user can read or change its files: one that others may use is
/// refused. Everything here throws `InvalidArgument` with the path, the reason and what to do.
class PrivateFolder {
 public:
  /// Whether others may list the folder. They may never change it, nor read a file of it.
  enum class Access : bool { owner_only, others_may_list };

  /// Returns nothing if the folder does not exist.
  static std::optional<PrivateFolder> open(const std::string& path, Access access, const FolderWords& words);
  /// Makes the folder, and those above it, where they do not exist.
  static PrivateFolder make(const std::string& path, Access access, const FolderWords& words);

  /// Returns the file's content, or nothing if there is no file.
  std::optional<std::string> read(const std::string& name, std::size_t max_bytes) const;
  /// Writes a file so that at any time, also after a crash, it is whole or as before. Returns false if it exists and may not be replaced.
  /// The name must not begin with '.'.
  bool write(const std::string& name, const std::string& text, Replace replace) const;
  /// Keeps other processes, and other holders in this one, from having the lock, until it is destroyed. Waits for those that have it, 2 s
  /// at most.
  UniqueFd lock() const;
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

 private:
  PrivateFolder(UniqueFd folder, std::string path, const FolderWords& words);

  UniqueFd folder_;
  std::string path_;
  FolderWords words_;
};

/// Returns the folder of Ringlet's configuration, $XDG_CONFIG_HOME/ringlet or ~/.config/ringlet, whether it exists or not. Throws
/// `InvalidArgument` if no home is known; the sentence says that there is no place for `contents`.
std::string config_folder(const Variables& variables, std::string_view contents);

}  // namespace ringlet::tokens
