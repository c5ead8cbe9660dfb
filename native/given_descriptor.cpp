#include "native/given_descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <charconv>

#include "transport/unique_fd.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::native {

UniqueFd GivenDescriptor::duplicate() const {
  struct stat found{};
  const bool is_here = ::fstat(number, &found) == 0 && static_cast<std::uint64_t>(found.st_dev) == device &&
                       static_cast<std::uint64_t>(found.st_ino) == inode;
  if (!is_here) return {};
  ::fcntl(number, F_SETFD, FD_CLOEXEC);
  uv::prevent_sigpipe(number);
  return UniqueFd(::fcntl(number, F_DUPFD_CLOEXEC, 3));
}

std::optional<std::string> describe_descriptor(int number) {
  struct stat found{};
  if (::fstat(number, &found) != 0) return std::nullopt;
  return fmt::format("{}:{}:{}", number, static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino));
}

GivenDescriptor parse_descriptor(const Setting& setting) {
  std::array<std::uint64_t, 3> numbers{};
  const char* at = setting.value.data();
  const char* const end = at + setting.value.size();
  for (std::uint64_t& number : numbers) {
    const auto [stop, error] = std::from_chars(at, end, number);
    const bool is_last = &number == &numbers.back();
    if (error != std::errc() || (is_last ? stop != end : stop == end || *stop != ':') || numbers[0] > 1 << 20)
      refuse(fmt::format("{} is '{}'; a launcher sets it to a descriptor and two numbers of its file, such as 7:2049:1234", setting.name,
                         setting.value));
    at = stop + 1;
  }
  return {static_cast<int>(numbers[0]), numbers[1], numbers[2]};
}

}  // namespace ringlet::native
