#include "tests/process/forged_beacons.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tools/datagrams/uv_datagrams.hpp"
#include "tools/discovery/beacon.hpp"

namespace ringlet::test {

ForgedBeacons::ForgedBeacons(const NetworkHost& host, const std::string& name, const std::string& group, const std::string& version) {
  // A socket stays in the namespace that it was made in.
  host.within([&] {
    socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    in_addr interface{};
    ::inet_pton(AF_INET, host.address().c_str(), &interface);
    ::setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface);
  });
  REQUIRE(socket_ >= 0);
  discovery::Beacon beacon;
  beacon.instance = 1;
  beacon.profile.name = name;
  beacon.profile.group = group;
  beacon.profile.version = version;
  sender_ = std::thread([this, beacon]() mutable {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(kDiscoveryPort);
    ::inet_pton(AF_INET, "239.255.82.78", &to.sin_addr);
    while (!over_) {
      ++beacon.sequence;
      const std::string bytes = discovery::encode_beacon(beacon);
      (void)::sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
}

ForgedBeacons::~ForgedBeacons() {
  over_ = true;
  sender_.join();
  ::close(socket_);
}

}  // namespace ringlet::test
