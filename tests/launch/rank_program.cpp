// A rank for the launcher's tests, where a shell would be too slow or could not do it.
// rank_program lines COUNT      COUNT numbered lines of varying length
// rank_program long BYTES       one line of BYTES letters, then "end"
// rank_program octets           every byte value, 1000 times, no newline at the end
// rank_program flood BYTES      BYTES zeros in large writes, then "done" on stderr
// rank_program adopt            accepts one connection on the socket that the launcher left to rank 0; the other ranks connect

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void print_lines(int count) {
  for (int i = 0; i < count; ++i) std::printf("line %d %s\n", i, std::string(static_cast<std::size_t>(i % 97), 'x').c_str());
}

void print_octets() {
  for (int round = 0; round < 1000; ++round)
    for (int value = 0; value < 256; ++value) std::putchar(value);
}

void flood(std::size_t bytes) {
  const std::string block(1 << 16, '0');
  for (std::size_t sent = 0; sent < bytes; sent += block.size()) std::fwrite(block.data(), 1, block.size(), stdout);
  std::fflush(stdout);
  std::fputs("done\n", stderr);
}

int accept_one(int listener) {
  const int connection = ::accept(listener, nullptr, nullptr);
  char letter = 0;
  if (connection < 0 || ::read(connection, &letter, 1) != 1) return 1;
  std::printf("accepted %c\n", letter);
  return 0;
}

int connect_to(const char* coordinator) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(std::strchr(coordinator, ':') + 1)));
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 1;
  return ::write(connection, "y", 1) == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "lines") {
    print_lines(count);
  } else if (what == "long") {
    std::printf("%s\nend\n", std::string(static_cast<std::size_t>(count), 'a').c_str());
  } else if (what == "octets") {
    print_octets();
  } else if (what == "flood") {
    flood(static_cast<std::size_t>(count));
  } else if (what == "adopt") {
    const char* inherited = std::getenv("RINGLET_COORDINATOR_FD");
    return inherited != nullptr ? accept_one(std::atoi(inherited)) : connect_to(std::getenv("RINGLET_COORDINATOR"));
  } else {
    return 2;
  }
  return 0;
}
