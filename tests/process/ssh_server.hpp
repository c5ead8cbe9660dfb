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
  /// Returns "ssh -F ...", for --ssh; `config` is a file of this directory.
  std::string command(const std::string& config = "client") const;

 private:
  TemporaryDirectory directory_;
};

/// An ssh server at port 22 of a host in its own network. It lets this user in by the test's key.
class SshServer {
 public:
  /// Returns when the server listens.
  SshServer(const NetworkHost& host, const SshKeys& keys);
  SshServer(const SshServer&) = delete;
  SshServer& operator=(const SshServer&) = delete;
  ~SshServer();

  /// Returns whether this system has what is needed.
  static bool is_here();

 private:
  pid_t pid_ = -1;
};

}  // namespace ringlet::test
