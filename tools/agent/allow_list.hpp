#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/job/messages.hpp"

namespace ringlet::agent {

/// Where a user's list of allowed programs stands: $XDG_CONFIG_HOME/ringlet/allowed, or ~/.config/ringlet/allowed; empty where neither
/// variable is set.
std::string default_allow_file();

/// The entries of such a list: a path per line; white space around it and lines that begin with # do not count.
std::vector<std::string> parse_allow_file(std::string_view text);

/// The programs that this machine's owner lets others start: none, unless they are named.
class AllowList {
 public:
  /// `entries`: absolute paths of programs, or of directories: then each program that stands directly in one may be started. `file`: more
  /// of them, read anew at each question; it need not exist.
  AllowList(std::vector<std::string> entries, std::string file);

  struct Answer {
    std::string program;  // the path to start, without symbolic links
    std::string refusal;  // or why not, with the path and what the machine's owner would have to do
  };
  /// Whether `path` may be started. Symbolic links are followed on both sides before they are compared, and a program that others could
  /// replace (it, or a directory above it, may be written by everyone) is refused.
  Answer ask(const std::string& path) const;

  const std::string& file() const noexcept { return file_; }
  /// A sentence where an entry of the command line can never match.
  std::optional<std::string> find_mistake() const;

 private:
  std::vector<std::string> entries_;
  std::string file_;
};

/// Why a variable of this name may not be set for programs on other machines: it makes programs load or run what their owner did not allow,
/// or belongs to Ringlet itself. A sentence without a subject; nothing where it may.
std::optional<std::string> find_forbidden(std::string_view variable);
/// A sentence where these arguments and variables would not be taken from another machine: a variable is forbidden, or reserved
/// (rank_environment.hpp), or there are too many.
std::optional<std::string> find_mistake(const job::StartRanks& start);

}  // namespace ringlet::agent
