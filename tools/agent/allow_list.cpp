#include "tools/agent/allow_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "native/environment.hpp"

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

/// In a user namespace root's files seem to belong to another user; the root directory shows to which.
bool is_trusted(::uid_t owner) {
  struct stat root{};
  return owner == 0 || owner == ::geteuid() || (::stat("/", &root) == 0 && owner == root.st_uid);
}

/// Why `path` could be another user's program: the first of it and the directories above it that someone else may change.
std::optional<std::string> find_open_door(fs::path path) {
  for (;; path = path.parent_path()) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return fmt::format("{} cannot be examined", path.string());
    if (!is_trusted(found.st_uid))
      return fmt::format("{} belongs to user {}, who could replace it; only what is root's or that of the user of `ringlet up` is started",
                         path.string(), found.st_uid);
    if (anyone_may_write(found))
      return fmt::format("everyone there may write {0}, so it could be anyone's program; its owner would have to run: chmod o-w {0}",
                         path.string());
    if (path == path.root_path()) return std::nullopt;
  }
}

/// Why what `path` names could be another user's choice: the first link on the way there that someone else may let lead elsewhere.
std::optional<std::string> find_open_link(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as Linux follows
  std::vector<fs::path> rest;    // the next one is the last
  const auto add = [&rest](const fs::path& more) {
    const auto relative = more.relative_path();
    const std::vector<fs::path> parts(relative.begin(), relative.end());
    rest.insert(rest.end(), parts.rbegin(), parts.rend());
  };
  add(path);
  fs::path walked = path.root_path();
  for (int links = 0; !rest.empty();) {
    const fs::path part = rest.back();
    rest.pop_back();
    if (part == "..") walked = walked.parent_path();
    if (part.empty() || part == "." || part == "..") continue;
    const fs::path next = walked / part;
    struct stat found{};
    if (::lstat(next.c_str(), &found) != 0) return fmt::format("{} cannot be examined", next.string());
    if (!S_ISLNK(found.st_mode)) {
      walked = next;
      continue;
    }
    if (!is_trusted(found.st_uid))
      return fmt::format("the link {} belongs to user {}, who could let it lead elsewhere", next.string(), found.st_uid);
    if (auto door = find_open_door(walked)) return door;
    std::error_code error;
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > kMaxLinks) return fmt::format("the link {} cannot be followed", next.string());
    if (target.is_absolute()) walked = target.root_path();
    add(target);
  }
  return std::nullopt;
}

/// Nothing where the file is longer than it may be: a line that was cut off could allow more than the whole one.
std::optional<std::string> read_entries(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return text.size() > kMaxFileBytes ? std::nullopt : std::optional(std::move(text));
}

struct Entry {
  fs::path given;  // as it was written
  fs::path path;   // without symbolic links
  std::optional<std::vector<std::string>> patterns;
};

/// Nothing where there is no such program or directory. A path may have spaces in it: what exists as a whole has no patterns.
std::optional<Entry> read_entry(const std::string& text) {
  if (text.empty() || text.front() != '/') return std::nullopt;
  if (const auto real = real_path(text)) return Entry{text, *real, std::nullopt};
  std::istringstream words(text);
  const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  const auto real = real_path(all.front());
  if (!real || all.size() < 2) return std::nullopt;
  return Entry{all.front(), *real, std::vector<std::string>(all.begin() + 1, all.end())};
}

/// The path of what is in a directory, of which the directory alone is without symbolic links.
fs::path own_name(const fs::path& path) {
  const auto directory = real_path(path.parent_path().string());
  return directory && path.has_filename() && path.filename() != "." && path.filename() != ".." ? *directory / path.filename() : path;
}

bool names(const Entry& entry, const fs::path& program) {
  struct stat found{};
  if (::stat(entry.path.c_str(), &found) != 0) return false;
  return S_ISDIR(found.st_mode) ? program.parent_path() == entry.path && !anyone_may_write(found) : program == entry.path;
}

bool matches(const std::vector<std::string>& patterns, const std::vector<std::string>& arguments) {
  const bool any_more = patterns.back() == "...";
  const std::size_t count = patterns.size() - (any_more ? 1 : 0);
  if (arguments.size() < count || (arguments.size() > count && !any_more)) return false;
  return std::equal(patterns.begin(), patterns.begin() + static_cast<std::ptrdiff_t>(count), arguments.begin(),
                    [](const std::string& pattern, const std::string& argument) {
                      return ::fnmatch(pattern.c_str(), argument.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
                    });
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

AllowList::AllowList(std::vector<std::string> entries, std::string file) : entries_(std::move(entries)), file_(std::move(file)) {
  for (const std::string& text : entries_) {
    const auto entry = read_entry(text);
    targets_.push_back(entry ? entry->path.string() : "");
  }
}

std::optional<std::string> AllowList::find_mistake() const {
  for (const std::string& entry : entries_) {
    if (entry.empty() || entry.front() != '/')
      return fmt::format("--allow {}: give the absolute path of a program, or of a directory of programs", entry);
    if (!read_entry(entry)) return fmt::format("--allow {}: there is no such program or directory on this machine", entry);
  }
  return std::nullopt;
}

std::optional<std::string> AllowList::add_file(std::vector<std::string>& entries) const {
  struct stat list{};
  if (file_.empty() || ::stat(file_.c_str(), &list) != 0) return std::nullopt;
  if (!S_ISREG(list.st_mode)) return fmt::format("the list {} is not used: it is no regular file", file_);
  if (anyone_may_write(list))
    return fmt::format("the list {0} is not trusted: everyone there may write it; its owner would have to run: chmod o-w {0}", file_);
  if (!is_trusted(list.st_uid)) return fmt::format("the list {} is not trusted: it belongs to user {}", file_, list.st_uid);
  const auto text = read_entries(file_);
  if (!text) return fmt::format("the list {} is not used: it is longer than {} bytes", file_, kMaxFileBytes);
  const auto more = parse_allow_file(*text);
  entries.insert(entries.end(), more.begin(), more.end());
  return std::nullopt;
}

AllowList::Answer AllowList::ask(const std::string& path, const std::vector<std::string>* arguments) const {
  const auto refuse = [](std::string text) { return Answer{"", std::move(text)}; };
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos)
    return refuse(fmt::format("'{}' is no absolute path; programs are only started by their absolute path", path));
  const auto real = real_path(path);
  struct stat found{};
  if (!real || ::stat(real->c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return refuse("there is no program " + path);
  std::vector<std::string> entries = entries_;
  if (auto mistrust = add_file(entries)) return refuse(std::move(*mistrust));

  std::vector<std::string> with_other_arguments;
  std::optional<Entry> allowing;
  std::string moved;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto entry = read_entry(entries[i]);
    if (!entry || !names(*entry, *real)) continue;
    if (i < targets_.size() && entry->path != targets_[i]) {
      moved = fmt::format("{} is not started: it led to {} when `ringlet up` was started here, and leads to {} now", entry->given.string(),
                          targets_[i].empty() ? "nothing" : targets_[i], entry->path.string());
    } else if (entry->patterns && arguments != nullptr && !matches(*entry->patterns, *arguments)) {
      with_other_arguments.push_back(fmt::format("{}", fmt::join(*entry->patterns, " ")));
    } else if (!allowing || own_name(entry->given) == own_name(path)) {
      // Two environments' Pythons are links to one: each is started by its own name.
      allowing = std::move(entry);
    }
  }
  if (!allowing && !with_other_arguments.empty())
    return refuse(fmt::format("{} is allowed there with other arguments only: {}", path, fmt::join(with_other_arguments, "; or ")));
  if (!allowing && !moved.empty()) return refuse(std::move(moved));
  if (!allowing) {
    const std::string where = file_.empty() ? "the list that its `ringlet up --allow-file` names" : file_ + " there";
    if (runs_any_program(*real))
      return refuse(fmt::format("{} is not allowed, and should not be: {} runs whatever its arguments say; give a program of its own", path,
                                real->filename().string()));
    return refuse(
        fmt::format("{0} is not allowed; the machine's owner would have to start `ringlet up` with --allow {2}, or add this line "
                    "to {1}: {2}",
                    path, where, real->string()));
  }
  auto door = find_open_door(*real);
  if (!door) door = find_open_link(allowing->given);
  if (door) return refuse(fmt::format("{} is not started: {}", path, *door));
  if (::access(real->c_str(), X_OK) != 0) return refuse(path + " is not executable");
  return {(allowing->path == *real ? own_name(allowing->given) : *real).string(), ""};
}

}  // namespace ringlet::agent
