#include "native/status/status_directory.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>

#include "tests/temporary_directory.hpp"

using namespace ringlet;
using namespace ringlet::native;

namespace {

/// A socket in the file system, which is closed again unless `listens`; its descriptor.
int make_socket(const std::string& path, bool listens) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  if (listens) REQUIRE(::listen(socket, 1) == 0);
  if (!listens) ::close(socket);
  return socket;
}

void make_old(const std::string& path) {
  const timespec then{std::time(nullptr) - 3600, 0};
  const timespec both[2] = {then, then};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), both, 0) == 0);
}

}  // namespace

TEST_CASE("the socket of a dead rank is removed, also where another process has its number by now") {
  const test::TemporaryDirectory directory;
  // This process lives, as does the one that has the dead rank's number.
  const std::string begins = status_path(directory.path(), 1, 0), dead = status_path(directory.path(), 2, 0),
                    listens = status_path(directory.path(), 3, 0);
  make_socket(begins, false);
  make_socket(dead, false);
  make_old(dead);
  const int socket = make_socket(listens, true);
  make_old(listens);
  const auto found = find_status_addresses(directory.path());
  REQUIRE(found.size() == 2);
  CHECK(found[0].path == begins);
  CHECK(found[1].path == listens);
  CHECK_FALSE(std::filesystem::exists(dead));
  ::close(socket);
}
