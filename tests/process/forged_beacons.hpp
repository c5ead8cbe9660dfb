#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "tests/process/network_of_hosts.hpp"

namespace ringlet::test {

/// A machine that does not exist: while this object lives, its presence is sent from a host by multicast, several times a second.
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
