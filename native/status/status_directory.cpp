#include "native/status/status_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

namespace ringlet::native {

namespace {

constexpr std::string_view kSuffix = ".socket";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

bool is_own_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid();
}

template <class Number>
bool take_number(std::string_view& text, Number& number, int base, char behind) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || stop == text.data() + text.size() || *stop != behind) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return true;
}

/// Parses a socket's name, such as "0123456789abcdef-2-4711.socket": world, rank, process.
std::optional<StatusAddress> parse_name(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  StatusAddress address{path.string()};
  if (!take_number(rest, address.world, 16, '-') || !take_number(rest, address.rank, 10, '-') ||
      !take_number(rest, address.process, 10, kSuffix[0]) || rest != kSuffix.substr(1) || address.process <= 0)
    return std::nullopt;
  return address;
}

/// Whether the process that has made the socket may be only about to listen there. Another process may have its number by now.
bool may_be_about_to_listen(const StatusAddress& address) {
  constexpr std::time_t kAtMostSeconds = 60;
  if (::kill(address.process, 0) != 0 && errno == ESRCH) return false;
  struct stat found{};
  return ::stat(address.path.c_str(), &found) != 0 || std::time(nullptr) - found.st_mtime <= kAtMostSeconds;
}

/// Whether nobody listens at the socket any more.
bool is_dead(const StatusAddress& address) {
  if (may_be_about_to_listen(address)) return false;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof to.sun_path) return false;
  std::memcpy(to.sun_path, address.path.c_str(), address.path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (socket < 0) return false;
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  // In another container the process may have another number, so the socket itself is tried as well.
  const bool refused = ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno == ECONNREFUSED;
  ::close(socket);
  return refused;
}

}  // namespace

std::string status_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/' && is_own_directory(runtime)) return std::string(runtime) + "/ringlet";
  std::error_code none;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(none);
  return (temporary / fmt::format("ringlet-{}", ::geteuid())).string();
}

Status check_status_directory(const std::string& directory) {
  struct stat found{};
  if (::lstat(directory.c_str(), &found) != 0)
    return {Errc::io_error, fmt::format("'{}' cannot be looked at: {}", directory, std::generic_category().message(errno))};
  if (!S_ISDIR(found.st_mode)) return {Errc::io_error, fmt::format("'{}' is not a directory; remove it", directory)};
  if (found.st_uid != ::geteuid()) return {Errc::io_error, fmt::format("'{}' belongs to another user; have it removed", directory)};
  if ((found.st_mode & kOthers) != 0)
    return {Errc::io_error, fmt::format("others may enter '{}'; run `chmod 700 {}`", directory, directory)};
  return {};
}

Status make_status_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return {Errc::io_error, fmt::format("'{}' cannot be made: {}", directory, std::generic_category().message(errno))};
  return check_status_directory(directory);
}

std::string status_path(const std::string& directory, std::uint64_t world, int rank) {
  return fmt::format("{}/{:016x}-{}-{}{}", directory, world, rank, ::getpid(), kSuffix);
}

std::vector<StatusAddress> find_status_addresses(const std::string& directory) {
  std::vector<StatusAddress> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto address = parse_name(entry->path());
    if (!address) continue;
    if (is_dead(*address))
      ::unlink(address->path.c_str());
    else
      found.push_back(*address);
  }
  std::sort(found.begin(), found.end(), [](const StatusAddress& one, const StatusAddress& other) {
    return std::tie(one.world, one.rank, one.process) < std::tie(other.world, other.rank, other.process);
  });
  return found;
}

}  // namespace ringlet::native
