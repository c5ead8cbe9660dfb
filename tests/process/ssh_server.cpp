#include "tests/process/ssh_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>

namespace ringlet::test {

SshKeys::SshKeys() {
  const std::string& path = directory();
  for (const char* key : {"host", "user", "stranger"}) shell("ssh-keygen -q -t ed25519 -N '' -f " + path + "/" + key);
  shell("cp " + path + "/user.pub " + path + "/authorized");
  shell("echo \"* $(cut -d' ' -f1,2 " + path + "/host.pub)\" >" + path + "/known");
  std::ofstream(path + "/server")
      << "Port 22\nListenAddress 0.0.0.0\nHostKey " << path << "/host\nAuthorizedKeysFile " << path
      << "/authorized\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
         "KbdInteractiveAuthentication no\nUseDNS no\n";
  const auto client = [&](const std::string& name, const std::string& key, const std::string& known) {
    std::ofstream(path + "/" + name) << "Host *\n  IdentityFile " << path << "/" << key << "\n  IdentitiesOnly yes\n  IdentityAgent none\n"
                                     << "  UserKnownHostsFile " << path << "/" << known
                                     << "\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n"
                                        "Host nickname\n  HostName 10.77.0.2\n";
  };
  client("client", "user", "known");
  client("client-wrong-key", "stranger", "known");
  client("client-knows-nobody", "user", "none");
}

std::string SshKeys::command(const std::string& config) const { return "ssh -F " + directory() + "/" + config; }

bool SshServer::is_here() { return ::geteuid() == 0 && ::access("/usr/sbin/sshd", X_OK) == 0; }

SshServer::SshServer(const NetworkHost& host, const SshKeys& keys) {
  // The server's directory for the separation of privileges may be missing where the system runs no ssh server.
  const std::string line = host.enter_line() +
                           " unshare --mount sh -c 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "
                           "/usr/sbin/sshd -D -e -f " +
                           keys.directory() + "/server'";
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(pipe[1], STDERR_FILENO);
    ::execl("/bin/sh", "sh", "-c", ("exec " + line).c_str(), nullptr);
    ::_exit(99);
  }
  ::close(pipe[1]);
  std::string told;
  while (told.find("Server listening") == std::string::npos) {
    std::array<char, 4096> buffer;
    pollfd entry{pipe[0], POLLIN, 0};
    INFO(told);
    REQUIRE(::poll(&entry, 1, 40'000) == 1);
    const ssize_t count = ::read(pipe[0], buffer.data(), buffer.size());
    REQUIRE(count > 0);
    told.append(buffer.data(), static_cast<std::size_t>(count));
  }
  // Nobody reads what the server says later; a closed pipe only makes it silent.
  ::close(pipe[0]);
}

SshServer::~SshServer() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace ringlet::test
