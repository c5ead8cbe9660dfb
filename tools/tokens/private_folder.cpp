#include "tools/tokens/private_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "core/base/refuse.hpp"
#include "native/write_all.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::tokens {

namespace {

constexpr mode_t kPrivateFile = 0600, kPrivateFolder = 0700;
// A holder reads and writes one small file, which takes milliseconds.
constexpr int kLockAttempts = 400;
constexpr std::chrono::milliseconds kLockPause{5};

[[noreturn]] void cannot(const char* what, const std::string& path, int error) {
  refuse(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

/// Refuses a folder that other users may access, since they could read or replace what it holds.
void check_folder(int folder, const std::string& path, PrivateFolder::Access access, const FolderWords& words) {
  struct stat status{};
  if (::fstat(folder, &status) != 0) cannot("look at", path, errno);
  if (status.st_uid != ::geteuid()) refuse(fmt::format("'{}' belongs to another user; remove it, or set XDG_CONFIG_HOME", path));
  if (access == PrivateFolder::Access::owner_only && (status.st_mode & 077) != 0)
    refuse(fmt::format("others may use '{}', which holds {}; run: chmod 700 '{}'", path, words.contents, path));
  if ((status.st_mode & 022) != 0)
    refuse(fmt::format("others may change '{}', which holds {}; run: chmod go-w '{}'", path, words.contents, path));
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), kPrivateFolder) != 0 && errno != EEXIST) cannot("make the folder", path, errno);
}

void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    make_folder(path.substr(0, slash));
  make_folder(path);
}

/// Returns a name that no other file has, since names do not begin with '.'.
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
    const UniqueFd file(::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
    if (!file) cannot("make", path_, errno);
    if (const int error = native::write_all(file.get(), std::as_bytes(std::span(text))); error != 0) cannot("write", path_, error);
    if (::fsync(file.get()) != 0) cannot("write", path_, errno);
  }
  /// Gives the file its final name. Returns false if a file of that name exists and may not be replaced.
  bool name(const std::string& name, Replace replace) const {
    const bool named = replace == Replace::yes ? ::renameat(folder_, name_.c_str(), folder_, name.c_str()) == 0
                                               : ::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) == 0;
    if (!named && errno != EEXIST) cannot("give its final name to", path_, errno);
    return named;
  }

 private:
  const int folder_;
  const std::string name_;
  const std::string path_;
};

}  // namespace

PrivateFolder::PrivateFolder(UniqueFd folder, std::string path, const FolderWords& words)
    : folder_(std::move(folder)), path_(std::move(path)), words_(words) {}

std::optional<PrivateFolder> PrivateFolder::open(const std::string& path, Access access, const FolderWords& words) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    if (errno == ENOENT) return std::nullopt;
    cannot("open", path, errno);
  }
  check_folder(folder.get(), path, access, words);
  return PrivateFolder(std::move(folder), path, words);
}

PrivateFolder PrivateFolder::make(const std::string& path, Access access, const FolderWords& words) {
  make_folders(path);
  std::optional<PrivateFolder> folder = open(path, access, words);
  if (!folder) cannot("open", path, ENOENT);
  return std::move(*folder);
}

std::optional<std::string> PrivateFolder::read(const std::string& name, std::size_t max_bytes) const {
  const std::string path = path_of(name);
  // O_NONBLOCK keeps the open from blocking if there is a pipe in the file's place.
  const UniqueFd file(::openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    cannot("open", path, errno);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) cannot("look at", path, errno);
  if (!S_ISREG(status.st_mode)) refuse(fmt::format("'{}' is no file; remove it", path));
  if (status.st_uid != ::geteuid()) refuse(fmt::format("'{}' belongs to another user; remove it and begin anew", path));
  if ((status.st_mode & 077) != 0)
    refuse(fmt::format("others may read '{}', so {}, or, if nobody has used that, run: chmod 600 '{}'", path, words_.exposed, path));
  std::string text;
  std::array<char, 4'096> part;
  while (text.size() <= max_bytes) {
    const ssize_t count = ::read(file.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot("read", path, errno);
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  refuse(fmt::format("'{}' is longer than {} bytes, so {}", path, max_bytes, words_.too_long));
}

bool PrivateFolder::write(const std::string& name, const std::string& text, Replace replace) const {
  const TemporaryFile fresh(folder_.get(), path_);
  fresh.write(text);
  if (!fresh.name(name, replace)) return false;
  if (::fsync(folder_.get()) != 0) cannot("write", path_, errno);
  return true;
}

UniqueFd PrivateFolder::lock() const {
  // A lock belongs to the opened file, so each holder opens the folder for itself.
  UniqueFd holder(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!holder) cannot("open", path_, errno);
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(holder.get(), LOCK_EX | LOCK_NB) == 0) return holder;
    if (errno != EWOULDBLOCK && errno != EINTR) cannot("lock", path_, errno);
    std::this_thread::sleep_for(kLockPause);
  }
  refuse(fmt::format("another process keeps '{}' locked; is a `ringlet` stopped (Ctrl-Z)? End it and try again", path_));
}

std::string config_folder(const Variables& variables, std::string_view contents) {
  // The XDG specification says that relative paths must be ignored.
  if (auto folder = variables("XDG_CONFIG_HOME"); folder && folder->starts_with('/')) return *folder + "/ringlet";
  if (auto home = variables("HOME"); home && home->starts_with('/')) return *home + "/.config/ringlet";
  refuse(fmt::format("there is no place for {}: neither XDG_CONFIG_HOME nor HOME is set to an absolute path; set one of them", contents));
}

}  // namespace ringlet::tokens
