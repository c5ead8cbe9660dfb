#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "tests/process/network_of_hosts.hpp"

namespace ringlet::test {

/// A machine that is none: its presence is sent from a host by multicast, some times a second, as long as this lives.
class ForgedBeacons {
 public:
  ForgedBeacons(const NetworkHost& host, const std::string& name, const std::string& group, const std::string& version);
  ~ForgedBeacons();
  ForgedBeacons(const ForgedBeacons&) = delete;
  ForgedBeacons& operator=(const ForgedBeacons&) = delete;

 private:
  int socket_ = -1;
  std::atomic<bool> over_{false};
  std::thread sender_;
};

}  // namespace ringlet::test
