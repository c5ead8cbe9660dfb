#include "tools/launch/hosts/ssh_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/launch/internal_commands.hpp"

namespace ringlet::launch {

namespace {

constexpr int kNotFound = 127, kNotRunnable = 126, kSshFailed = 255;

/// Quotes a word for any shell: all of them leave the text between single quotes unchanged.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

std::string remote_line(const SshOptions& options, const std::string& helper_path) {
  if (options.remote_ringlet) return fmt::format("exec {} {}", quoted(*options.remote_ringlet), kDeputyCommand);
  const std::string script =
      fmt::format("if command -v ringlet >/dev/null 2>&1; then exec ringlet {0}; elif [ -x {1} ]; then exec {1} {0}; else exit {2}; fi",
                  kDeputyCommand, quoted(helper_path), kNotFound);
  return "exec sh -c " + quoted(script);
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of("\r\n", end);
  std::string line = text.substr(begin + 1, end - begin);
  // The sentences that hold this line have these words before it.
  if (line.rfind("ssh: ", 0) == 0) line.erase(0, 5);
  std::replace_if(line.begin(), line.end(), [](unsigned char letter) { return letter < ' '; }, '?');
  return line;
}

struct Cause {
  std::string_view sign;    // in ssh's own words
  std::string_view remedy;  // {0}: ssh with its options and the host, {1}: the host's name
};

// The first cause whose sign is found counts.
constexpr std::array kCauses{
    Cause{"IDENTIFICATION HAS CHANGED", "the host's key is another than before; if that is meant to be, run: ssh-keygen -R {1}"},
    Cause{"Host key verification failed", "its key is not known here yet; run this once, and compare the fingerprint: {0} true"},
    Cause{"Permission denied",
          "ssh would ask for a password or finds no key that fits; make it log in by itself: ssh-copy-id {2}, then {0} true"},
    Cause{"Too many authentication failures", "none of the keys fits; name the right one: --ssh \"ssh -i KEY -o IdentitiesOnly=yes\""},
    Cause{"Could not resolve hostname", "there is no machine of that name; check how it is written, or give its address"},
    Cause{"Connection refused", "no ssh server listens there; start one on {1}, or name its port: --ssh \"ssh -p PORT\""},
    Cause{"timed out", "it does not answer; is it on, and on this network? try: {0} true"},
    Cause{"No route to host", "it cannot be reached; is it on, and on this network? try: {0} true"},
    Cause{"Network is unreachable", "there is no way to its network from here; check its address"},
    Cause{"Connection closed", "its ssh server hung up; see what it says: {0} -v true"},
};

}  // namespace

std::vector<std::string> deputy_command(const Host& host, const SshOptions& options, const std::string& helper_path) {
  if (is_this_machine(host)) return {helper_path, kDeputyCommand};
  std::vector<std::string> command = options.ssh;
  // ssh takes the first value that it sees, so the user's own settings come first.
  for (const char* setting : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"}) {
    command.emplace_back("-o");
    command.emplace_back(setting);
  }
  for (const std::string& word : {std::string("-T"), std::string("--"), host.ssh, remote_line(options, helper_path)})
    command.push_back(word);
  return command;
}

std::string explain_failure(const Host& host, const SshOptions& options, const std::string& helper_path, int exit_code,
                            const std::string& complaint) {
  const std::string told = last_line(complaint);
  const std::string ssh = fmt::format("{} {}", fmt::join(options.ssh, " "), host.ssh);
  if (is_this_machine(host)) return fmt::format("{}: '{}' ended with code {}: {}", host.ssh, helper_path, exit_code, told);
  if (exit_code == kSshFailed) {
    for (const Cause& cause : kCauses)
      if (complaint.find(cause.sign) != std::string::npos)
        return fmt::format("{}: {} (ssh: {})", host.ssh, fmt::format(fmt::runtime(cause.remedy), ssh, host.name(), host.ssh), told);
    return fmt::format("{}: ssh could not connect: {}; try: {} true", host.ssh, told.empty() ? "it does not say why" : told, ssh);
  }
  if (exit_code == kNotFound || exit_code == kNotRunnable) {
    const std::string where = options.remote_ringlet ? "at " + *options.remote_ringlet : "in PATH or at " + helper_path;
    return fmt::format("{}: there is no `ringlet` there {}; install it on that machine, too, or say where it is with --remote-ringlet PATH",
                       host.ssh, where);
  }
  return fmt::format("{}: `ringlet` there ended with code {} before it answered{}{}; are the versions the same? try: {} ringlet version",
                     host.ssh, exit_code, told.empty() ? "" : ": ", told, ssh);
}

std::string explain_loss(const Host& host, int exit_code, const std::string& complaint) {
  const std::string name = is_this_machine(host) ? "its deputy" : "ssh";
  const std::string told = last_line(complaint);
  return name + (told.empty() ? fmt::format(" ended with code {}", exit_code) : ": " + told);
}

}  // namespace ringlet::launch
