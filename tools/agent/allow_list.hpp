#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::agent {

/// Where a user's list of allowed programs stands: $XDG_CONFIG_HOME/ringlet/allowed, or ~/.config/ringlet/allowed; empty where neither
/// variable is set.
std::string default_allow_file();

/// The entries of such a list, one per line; white space around it and lines that begin with # do not count.
std::vector<std::string> parse_allow_file(std::string_view text);

/// The programs that this machine's owner lets others start: none, unless they are named.
class AllowList {
 public:
  /// `entries`: absolute paths of programs, or of directories: then each program that stands directly in one may be started. After the path
  /// may follow, with spaces between, one pattern for each argument (fnmatch(3); * and ? stand for no slash and no dot at the beginning),
  /// and "..." at the end for any further ones; without them all arguments are allowed. `file`: more entries, read anew at each question;
  /// it need not exist.
  AllowList(std::vector<std::string> entries, std::string file);

  struct Answer {
    std::string program;  // the path to start: that which the owner gave, in a directory without symbolic links
    std::string refusal;  // or why not, with the path and what the machine's owner would have to do
  };
  /// Whether `path` may be started with `arguments`, or, without these, with any. Symbolic links are followed on both sides before they are
  /// compared, and a program that others could replace is refused: it, a directory above it, or a link on the way from the entry to it or
  /// that link's directory may be written by everyone, or belongs to a user who is neither root nor the one that this process runs as. An
  /// entry of the constructor's is refused where its links lead elsewhere than then. What an entry of a link allows is started by that
  /// link's name: programs such as the Python of a virtual environment go by it.
  Answer ask(const std::string& path, const std::vector<std::string>* arguments = nullptr) const;

  const std::string& file() const noexcept { return file_; }
  /// A sentence where an entry of the command line can never match.
  std::optional<std::string> find_mistake() const;

 private:
  /// Adds the entries of the file; a sentence where it is not trusted.
  std::optional<std::string> add_file(std::vector<std::string>& entries) const;

  std::vector<std::string> entries_;
  std::vector<std::string> targets_;  // of each of these: where it led at first; empty where nothing was
  std::string file_;
};

}  // namespace ringlet::agent
