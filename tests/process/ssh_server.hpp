#pragma once

#include <sys/types.h>

#include <string>

#include "tests/process/network_of_hosts.hpp"
#include "tests/temporary_directory.hpp"

namespace ringlet::test {

/// Keys and settings for ssh servers and clients of a test, which touch neither the system's nor the user's.
class SshKeys {
 public:
  SshKeys();

  const std::string& directory() const noexcept { return directory_.path(); }
  /// "ssh -F ...", for --ssh; `config` is a file of this directory.
  std::string command(const std::string& config = "client") const;

 private:
  TemporaryDirectory directory_;
};

/// An ssh server on a host of its own network, at port 22 there; it lets this user in by the test's key.
class SshServer {
 public:
  /// Returns when it listens.
  SshServer(const NetworkHost& host, const SshKeys& keys);
  SshServer(const SshServer&) = delete;
  SshServer& operator=(const SshServer&) = delete;
  ~SshServer();

  /// Whether this system has what is needed.
  static bool is_here();

 private:
  pid_t pid_ = -1;
};

}  // namespace ringlet::test
