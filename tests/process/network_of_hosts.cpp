#include "tests/process/network_of_hosts.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

namespace ringlet::test {

namespace {

constexpr char kIp[] = "PATH=$PATH:/usr/sbin:/sbin ip ";

void write_to(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Moves this process to a network namespace of its own: directly as root, by way of a user namespace as another user.
bool leave_network() {
  const auto user = std::to_string(::geteuid());
  const auto group = std::to_string(::getegid());
  if (user == "0" && ::unshare(CLONE_NEWNET) == 0) return true;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  write_to("/proc/self/setgroups", "deny");
  write_to("/proc/self/uid_map", "0 " + user + " 1");
  write_to("/proc/self/gid_map", "0 " + group + " 1");
  return true;
}

std::string port_name(int host, int interface) { return "h" + std::to_string(host) + "e" + std::to_string(interface); }

}  // namespace

void shell(const std::string& command) {
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);
}

NetworkHost::NetworkHost(int number) : number_(number) {
  int ready[2];
  REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
  keeper_ = ::fork();
  REQUIRE(keeper_ >= 0);
  if (keeper_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool left = ::unshare(CLONE_NEWNET) == 0 && ::write(ready[1], "x", 1) == 1;
    ::close(ready[1]);
    while (left) ::pause();
    ::_exit(1);
  }
  ::close(ready[1]);
  char byte = 0;
  const bool separate = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  REQUIRE(separate);
  namespace_ = ::open(("/proc/" + std::to_string(keeper_) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(namespace_ >= 0);
  ip("link set lo up");
  for (const int interface : {0, 1}) {
    const std::string port = port_name(number_, interface), own = "eth" + std::to_string(interface);
    shell(kIp + ("link add " + port + " type veth peer name " + own + " netns " + std::to_string(keeper_)));
    shell(kIp + ("link set " + port + " master br" + std::to_string(interface) + " up"));
    ip("addr add " + address(interface) + "/24 dev " + own);
    ip("link set " + own + " up");
  }
}

NetworkHost::~NetworkHost() {
  if (namespace_ >= 0) ::close(namespace_);
  // The interfaces would go with their namespace, too, but some time later.
  for (const int interface : {0, 1}) (void)!std::system((kIp + ("link del " + port_name(number_, interface) + " 2>/dev/null")).c_str());
  if (keeper_ <= 0) return;
  ::kill(keeper_, SIGKILL);
  ::waitpid(keeper_, nullptr, 0);
}

std::string NetworkHost::address(int interface) const { return "10." + std::to_string(77 + interface) + ".0." + std::to_string(number_); }

void NetworkHost::command(const std::string& text) const {
  shell("PATH=$PATH:/usr/sbin:/sbin nsenter --net=/proc/" + std::to_string(keeper_) + "/ns/net " + text);
}

std::unique_ptr<CommandProcess> NetworkHost::run(std::vector<std::string> arguments,
                                                 std::vector<std::pair<std::string, std::string>> variables) const {
  variables.insert(variables.begin(), {"XDG_CONFIG_HOME", config_home_.path()});
  return std::make_unique<CommandProcess>(std::move(arguments), std::move(variables), namespace_);
}

void NetworkHost::within(const std::function<void()>& task) const {
  bool entered = false;
  std::thread([&] {
    entered = enter();
    if (entered) task();
  }).join();
  REQUIRE(entered);
}

bool NetworkHost::enter() const { return ::setns(namespace_, CLONE_NEWNET) == 0; }

std::string NetworkHost::enter_line() const { return "nsenter --net=/proc/" + std::to_string(keeper_) + "/ns/net"; }

std::optional<std::string> NetworkOfHosts::enter() {
  static const std::optional<std::string> mistake = []() -> std::optional<std::string> {
    if (!leave_network()) return std::string(std::strerror(errno));
    // The process itself may have ranks of its own, which meet on the loopback.
    if (std::system((std::string(kIp) + "link set lo up && " + kIp + "link add br-probe type bridge && " + kIp +
                     "link del br-probe && command -v nsenter >/dev/null")
                        .c_str()) != 0)
      return std::string("no bridge can be made; are iproute2 and nsenter here?");
    return std::nullopt;
  }();
  return mistake;
}

NetworkOfHosts::NetworkOfHosts(int hosts) {
  for (const char* bridge : {"br0", "br1"}) {
    shell(std::string(kIp) + "link add " + bridge + " type bridge mcast_snooping 0");
    shell(std::string(kIp) + "link set " + bridge + " up");
  }
  while (static_cast<int>(hosts_.size()) < hosts) add_host();
}

NetworkOfHosts::~NetworkOfHosts() {
  hosts_.clear();
  for (const char* bridge : {"br0", "br1"}) (void)!std::system((std::string(kIp) + "link del " + bridge).c_str());
}

const NetworkHost& NetworkOfHosts::add_host() {
  hosts_.push_back(std::make_unique<NetworkHost>(static_cast<int>(hosts_.size()) + 1));
  return *hosts_.back();
}

void NetworkOfHosts::block_multicast() { set_ports("mcast_flood off"); }

void NetworkOfHosts::isolate() { set_ports("isolated on"); }

void NetworkOfHosts::set_ports(const std::string& option) {
  for (std::size_t number = 1; number <= hosts_.size(); ++number)
    for (const int interface : {0, 1})
      shell(kIp + ("link set " + port_name(static_cast<int>(number), interface) + " type bridge_slave " + option));
}

}  // namespace ringlet::test
