#include "tools/agent/allow_list.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "native/environment.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 1 << 20;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r";
  const std::size_t begin = std::min(text.find_first_not_of(kWhite), text.size());
  const std::size_t end = text.find_last_not_of(kWhite) + 1;
  return text.substr(begin, end > begin ? end - begin : 0);
}

std::optional<fs::path> real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? std::nullopt : std::optional(real);
}

/// In a directory with the sticky bit no user can replace a file of another.
bool anyone_may_write(const struct stat& found) {
  return (found.st_mode & S_IWOTH) != 0 && !(S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0);
}

/// The first of `path` and the directories above it that everyone may write.
std::optional<std::string> find_open_door(fs::path path) {
  for (;; path = path.parent_path()) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0 || anyone_may_write(found)) return path.string();
    if (path == path.root_path()) return std::nullopt;
  }
}

std::string read_entries(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return text;
}

bool allows(const std::string& entry, const fs::path& program) {
  if (entry.empty() || entry.front() != '/') return false;
  const auto real = real_path(entry);
  if (!real) return false;
  struct stat found{};
  if (::stat(real->c_str(), &found) != 0) return false;
  return S_ISDIR(found.st_mode) ? program.parent_path() == *real && !anyone_may_write(found) : program == *real;
}

/// Tells whether it is a shell or an interpreter, by its name without a version.
bool runs_any_program(const std::filesystem::path& program) {
  constexpr std::array<std::string_view, 20> kNames{"sh",  "bash", "dash",   "zsh",  "ksh",  "mksh", "csh",  "tcsh", "fish", "busybox",
                                                    "env", "sudo", "python", "pypy", "perl", "ruby", "node", "lua",  "php",  "tclsh"};
  const std::string name = program.filename().string();
  const std::string_view stem = std::string_view(name).substr(0, name.find_last_not_of("0123456789.") + 1);
  return std::find(kNames.begin(), kNames.end(), stem) != kNames.end();
}

}  // namespace

std::string default_allow_file() {
  if (const auto config = native::process_variable("XDG_CONFIG_HOME"); config && config->front() == '/')
    return *config + "/ringlet/allowed";
  const auto home = native::process_variable("HOME");
  return home ? *home + "/.config/ringlet/allowed" : "";
}

std::vector<std::string> parse_allow_file(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') entries.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return entries;
}

AllowList::AllowList(std::vector<std::string> entries, std::string file) : entries_(std::move(entries)), file_(std::move(file)) {}

std::optional<std::string> AllowList::find_mistake() const {
  for (const std::string& entry : entries_) {
    if (entry.empty() || entry.front() != '/')
      return fmt::format("--allow {}: give the absolute path of a program, or of a directory of programs", entry);
    if (!real_path(entry)) return fmt::format("--allow {}: there is no such program or directory on this machine", entry);
  }
  return std::nullopt;
}

AllowList::Answer AllowList::ask(const std::string& path) const {
  const auto refuse = [](std::string text) { return Answer{"", std::move(text)}; };
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos)
    return refuse(fmt::format("'{}' is no absolute path; programs are only started by their absolute path", path));
  const auto real = real_path(path);
  struct stat found{};
  if (!real || ::stat(real->c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return refuse("there is no program " + path);
  struct stat list{};
  std::vector<std::string> entries = entries_;
  if (!file_.empty() && ::stat(file_.c_str(), &list) == 0) {
    if (anyone_may_write(list))
      return refuse(
          fmt::format("the list {0} is not trusted: everyone there may write it; its owner would have to run: chmod o-w {0}", file_));
    const auto more = parse_allow_file(read_entries(file_));
    entries.insert(entries.end(), more.begin(), more.end());
  }
  if (std::none_of(entries.begin(), entries.end(), [&](const std::string& entry) { return allows(entry, *real); })) {
    const std::string where = file_.empty() ? "the list that its `ringlet up --allow-file` names" : file_ + " there";
    if (runs_any_program(*real))
      return refuse(fmt::format("{} is not allowed, and should not be: {} runs whatever its arguments say; give a program of its own", path,
                                real->filename().string()));
    return refuse(
        fmt::format("{0} is not allowed; the machine's owner would have to start `ringlet up` with --allow {2}, or add this line "
                    "to {1}: {2}",
                    path, where, real->string()));
  }
  if (const auto door = find_open_door(*real))
    return refuse(
        fmt::format("{} is not started: everyone there may write {}, so it could be anyone's program; its owner would have to "
                    "run: chmod o-w {}",
                    path, *door, *door));
  if (::access(real->c_str(), X_OK) != 0) return refuse(path + " is not executable");
  return {real->string(), ""};
}

std::optional<std::string> find_forbidden(std::string_view variable) {
  // The dynamic loader, shells and interpreters take code, or paths to code, from these.
  constexpr std::array<std::string_view, 14> kBeginnings{"LD_",   "DYLD_",   "GLIBC_", "MALLOC_",   "PYTHON", "PERL",     "RUBY",
                                                         "NODE_", "DOTNET_", "JAVA_",  "BASH_FUNC", "GCONV_", "OPENSSL_", "RINGLET_TOKEN"};
  constexpr std::array<std::string_view, 14> kNames{"PATH",   "HOME",    "SHELL",   "IFS",      "ENV",  "BASH_ENV",  "PS4",
                                                    "CDPATH", "LOCPATH", "NLSPATH", "TERMINFO", "USER", "CLASSPATH", "HOSTALIASES"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto part_of_name = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  if (variable.empty() || !letter(variable.front()) || !std::all_of(variable.begin(), variable.end(), part_of_name))
    return "is no name of a variable: letters, digits and _ make one";
  if (variable.starts_with("RINGLET_TOKEN")) return "is set by Ringlet itself: each job gets a token of its own";
  const bool forbidden =
      std::find(kNames.begin(), kNames.end(), variable) != kNames.end() ||
      std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view beginning) { return variable.starts_with(beginning); });
  if (!forbidden) return std::nullopt;
  return "may not be set from another machine: it can make programs run what their owner has not allowed";
}

std::optional<std::string> find_mistake(const job::StartRanks& start) {
  constexpr std::size_t kMaxArguments = 4'096, kMaxVariables = 256;
  if (start.arguments.size() > kMaxArguments)
    return fmt::format("{} arguments; at most {} can be given", start.arguments.size(), kMaxArguments);
  if (start.environment.size() > kMaxVariables)
    return fmt::format("--env: {} variables; at most {} can be given", start.environment.size(), kMaxVariables);
  for (const job::Variable& variable : start.environment)
    if (const auto why = find_forbidden(variable.name))
      return fmt::format("--env {}={}: {} {}", variable.name, variable.value, variable.name, *why);
  return launch::find_reserved(start.environment);
}

}  // namespace ringlet::agent
