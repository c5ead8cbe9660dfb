#include "tools/tokens/saved_token.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ringlet/error.hpp>

#include "core/base/refuse.hpp"
#include "native/token.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::tokens {

namespace {

constexpr std::size_t kMaxGroupBytes = 64;
constexpr std::size_t kMaxTokenBytes = 4'096;
constexpr mode_t kPrivateFile = 0600, kPrivateFolder = 0700;

[[noreturn]] void cannot(const char* what, const std::string& path, int error) {
  refuse(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

/// An open descriptor that is closed on destruction.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }

 private:
  const int number_;
};

std::string config_folder(const Variables& variables) {
  // The XDG specification says that relative paths must be ignored.
  if (auto folder = variables("XDG_CONFIG_HOME"); folder && folder->front() == '/') return *folder;
  if (auto home = variables("HOME"); home && home->front() == '/') return *home + "/.config";
  refuse("there is no place for saved tokens: neither XDG_CONFIG_HOME nor HOME is set to an absolute path; set one of them");
}

std::string tokens_folder(const Variables& variables) { return config_folder(variables) + "/ringlet/tokens"; }

void check_group(const std::string& group) {
  if (auto mistake = find_group_mistake(group)) refuse(std::move(*mistake));
}

/// Refuses a folder that other users may access, since they could read or replace the token.
void check_folder(int folder, const std::string& path) {
  struct stat status{};
  if (::fstat(folder, &status) != 0) cannot("look at", path, errno);
  if (status.st_uid != ::geteuid()) refuse(fmt::format("'{}' belongs to another user; remove it, or set XDG_CONFIG_HOME", path));
  if ((status.st_mode & 077) != 0) refuse(fmt::format("others may use '{}', which holds tokens; run: chmod 700 '{}'", path, path));
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), kPrivateFolder) != 0 && errno != EEXIST) cannot("make the folder", path, errno);
}

void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    make_folder(path.substr(0, slash));
  make_folder(path);
}

std::string read_all(int file, const std::string& path) {
  std::string text;
  std::array<char, 1'024> part;
  while (text.size() <= kMaxTokenBytes) {
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot("read", path, errno);
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  refuse(fmt::format("'{}' is longer than {} bytes, so it is no token; remove it", path, kMaxTokenBytes));
}

void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Returns a name that no token file has, since group names do not begin with '.'.
std::string temporary_name() {
  std::array<std::byte, 8> random{};
  TokenAuthenticator("").fill_random(random);
  std::string name = ".new-";
  for (const std::byte byte : random) name += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return name;
}

/// A file that is removed on destruction unless it was given its final name.
class TemporaryFile {
 public:
  TemporaryFile(int folder, const std::string& folder_path) : folder_(folder), name_(temporary_name()), path_(folder_path + "/" + name_) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlinkat(folder_, name_.c_str(), 0); }

  void write(const std::string& text) const {
    const Descriptor file(::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
    if (!file.is_open()) cannot("make", path_, errno);
    write_all(file.get(), text, path_);
    if (::fsync(file.get()) != 0) cannot("write", path_, errno);
  }
  /// Gives the file its final name. Returns false if a file of that name exists and may not be replaced.
  bool name(const std::string& name, Replace replace) const {
    const bool named = replace == Replace::yes ? ::renameat(folder_, name_.c_str(), folder_, name.c_str()) == 0
                                               : ::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) == 0;
    if (!named && errno != EEXIST) cannot("name the new token after its group:", path_, errno);
    return named;
  }

 private:
  const int folder_;
  const std::string name_;
  const std::string path_;
};

}  // namespace

std::optional<std::string> find_group_mistake(const std::string& group) {
  const bool is_name =
      !group.empty() && group.size() <= kMaxGroupBytes && group.front() != '.' && utf8::is_valid(group.begin(), group.end());
  const auto is_bad = [](char letter) { return letter == '/' || static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f; };
  if (is_name && std::none_of(group.begin(), group.end(), is_bad)) return std::nullopt;
  std::string shown;
  for (const char letter : group.substr(0, kMaxGroupBytes))
    shown += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f ? '?' : letter;
  return fmt::format("group '{}': give 1 to {} bytes of UTF-8 without '/' and control characters, and no '.' at the beginning", shown,
                     kMaxGroupBytes);
}

std::string saved_token_path(const std::string& group, const Variables& variables) {
  check_group(group);
  return tokens_folder(variables) + "/" + group;
}

std::optional<std::string> load_token(const std::string& group, const Variables& variables) {
  check_group(group);
  const std::string folder_path = tokens_folder(variables), path = folder_path + "/" + group;
  const Descriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) {
    if (errno == ENOENT) return std::nullopt;
    cannot("open", folder_path, errno);
  }
  check_folder(folder.get(), folder_path);
  // O_NONBLOCK keeps the open from blocking if there is a pipe in the file's place.
  const Descriptor file(::openat(folder.get(), group.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::nullopt;
    cannot("open", path, errno);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) cannot("look at", path, errno);
  if (!S_ISREG(status.st_mode)) refuse(fmt::format("'{}' is no file; remove it", path));
  if (status.st_uid != ::geteuid()) refuse(fmt::format("'{}' belongs to another user; remove it and save the token again", path));
  if ((status.st_mode & 077) != 0)
    refuse(fmt::format("others may read '{}', so its token is no secret; make another one, or, if nobody has read it, run: chmod 600 '{}'",
                       path, path));
  return native::check_token(fmt::format("'{}'", path), read_all(file.get(), path));
}

bool save_token(const std::string& group, const std::string& token, Replace replace, const Variables& variables) {
  check_group(group);
  const std::string folder_path = tokens_folder(variables), checked = native::check_token("the given text", token);
  make_folders(folder_path);
  const Descriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) cannot("open", folder_path, errno);
  check_folder(folder.get(), folder_path);
  const TemporaryFile fresh(folder.get(), folder_path);
  fresh.write(checked + "\n");
  if (!fresh.name(group, replace)) return false;
  if (::fsync(folder.get()) != 0) cannot("write", folder_path, errno);
  return true;
}

}  // namespace ringlet::tokens
