#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "native/input_file.hpp"
#include "tools/agent/machine_search.hpp"
#include "tools/command/pair_line.hpp"
#include "tools/command/stop_signals.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/discovery/discovery.hpp"
#include "tools/launch/standard_error.hpp"
#include "tools/pairing/pairing_code.hpp"
#include "tools/pairing/pairing_dialler.hpp"
#include "tools/tokens/group_token.hpp"
#include "tools/tokens/saved_token.hpp"

namespace ringlet::command {

namespace {

using pairing::NewcomerSession;
using Stage = NewcomerSession::Stage;

// The search goes on for this long after the first host, to find out whether several hosts pair for the same group.
constexpr Duration kSearch = Duration::milliseconds(700);

// For as long a code is valid.
constexpr std::chrono::minutes kLongestCodeEntry{2};

using CodeText = std::array<char, 64>;

/// Reads a line of standard input. A signal ends the wait, which a stream would go on with.
void read_stdin(const StopSignals& signals, CodeText& text) {
  for (std::size_t length = 0; length + 1 < text.size() && !signals.came();) {
    const ssize_t count = ::read(STDIN_FILENO, &text[length], 1);
    if (count < 0 && errno == EINTR) continue;
    if (count == 1 && text[length] != '\n') {
      ++length;
      continue;
    }
    text[length] = '\0';
    return;
  }
}

/// Reads the first line of the file, which may be a pipe from what asks somebody for it.
void read_code_file(const std::string& path, CodeText& text) {
  auto read = native::read_input_file(path, {.longest_silence = kLongestCodeEntry});
  if (!read.ok()) throw std::runtime_error(fmt::format("--code-file '{}' cannot be read: {}; check the path", path, read.status().text()));
  std::string& all = read.value();
  all.copy(text.data(), std::min(all.find('\n'), text.size() - 1));
  OPENSSL_cleanse(all.data(), all.size());
}

/// Returns an exit code if a signal came before there was a code.
std::optional<int> ask_code(const PairLine& line, const StopSignals& signals, std::optional<pairing::Secret>& code) {
  constexpr int kPromptInterrupted = -2;
  CodeText text{};
  std::optional<int> stopped;
  if (line.code_file && *line.code_file != "-") {
    read_code_file(*line.code_file, text);
  } else if (line.code_file || ::isatty(STDIN_FILENO) != 1) {
    read_stdin(signals, text);
    if (signals.came()) stopped = signals.exit_code();
  } else {
    // The code is not echoed. OpenSSL catches signals meanwhile, and restores the terminal's settings.
    const int outcome = EVP_read_pw_string(text.data(), static_cast<int>(text.size()) - 1, "The code that the other machine shows: ", 0);
    if (outcome == kPromptInterrupted) stopped = 128 + SIGINT;
    if (outcome != 0 && !stopped) throw std::runtime_error("no code could be read from the terminal; nothing was saved");
  }
  code = pairing::read_code(text.data());
  OPENSSL_cleanse(text.data(), text.size());
  if (stopped) fail_pairing(*stopped, "stopped before there was a code; nothing was saved");
  return stopped;
}

std::vector<Address> pairing_addresses(const discovery::Machine& machine) {
  return agent::addresses_of(machine, machine.profile.pairing_port);
}

class Search {
 public:
  Search(UvLoop& loop, const PairLine& line)
      : loop_(loop),
        line_(line),
        datagrams_(loop, line.datagrams),
        discovery_(loop, datagrams_, {.seed = random_number(), .profile = {}, .devices = {}, .limits = {}},
                   [this](discovery::Change, const discovery::Machine& machine) { on_change(machine); }) {}
  ~Search() { loop_.cancel(timer_); }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Returns an exit code if there is not exactly one host.
  std::optional<int> run(const StopSignals& signals, std::vector<Address>& found) {
    discovery_.start();
    if (const Status status = datagrams_.status(); !status.ok())
      return fail_pairing(kFailed, status.text() + "; choose another port with --port, or name the machine with --peer HOST:PORT");
    timer_ = loop_.after(line_.wait, [this] { over_ = true; });
    while (!over_ && !signals.came()) loop_.wait();
    const auto hosts = discovery_.directory().find([this](const discovery::Machine& machine) { return pairs(machine); });
    discovery_.leave();
    if (signals.came()) return fail_pairing(signals.exit_code(), "stopped; nothing was saved");
    if (hosts.empty())
      return fail_pairing(
          kNobodyCame,
          fmt::format("no machine shows a code for group {}{}; run `ringlet pair --group '{}'` on one that has the token, or name it "
                      "with --peer HOST:PORT as it stands beside its code",
                      line_.group, datagrams_.describe_unknown(), line_.group));
    found = pairing_addresses(*hosts.front());
    if (hosts.size() == 1) return std::nullopt;
    std::string list;
    for (const discovery::Machine* host : hosts)
      list += fmt::format("{}{} (--peer {})", list.empty() ? "" : ", ", host->profile.name, to_string(pairing_addresses(*host).front()));
    return fail_pairing(kFailed, fmt::format("{} machines say that they pair for group {}: {}; name yours, since a code is for one try",
                                             hosts.size(), line_.group, list));
  }

 private:
  bool pairs(const discovery::Machine& machine) const { return machine.profile.pairing_port != 0 && machine.profile.group == line_.group; }
  void on_change(const discovery::Machine& machine) {
    if (!pairs(machine) || std::exchange(gathers_, true)) return;
    loop_.cancel(timer_);
    timer_ = loop_.after(kSearch, [this] { over_ = true; });
  }

  UvLoop& loop_;
  const PairLine& line_;
  UvDatagrams datagrams_;
  discovery::Discovery discovery_;
  TimerId timer_ = 0;
  bool gathers_ = false;
  bool over_ = false;
};

int explain(const PairLine& line, const NewcomerSession& session, const Status& status) {
  switch (session.stage()) {
    case Stage::wrong_code:
      return fail_pairing(kCodeRefused,
                          fmt::format("{} does not take this code, which is void now; if it shows a new one, run this again with "
                                      "that",
                                      session.host().name));
    case Stage::unproved:
      return fail_pairing(
          kCodeRefused,
          "what answered does not know the code: it was typed wrong, or something stands between the machines; nothing was saved");
    case Stage::other_group:
      return fail_pairing(kFailed, fmt::format("the machine that was named pairs for another group than {}; give its --group", line.group));
    case Stage::broken:
      return fail_pairing(kFailed, "what answered does not pair as this version does; is the same version of Ringlet there?");
    default:
      return fail_pairing(kFailed, status.text());
  }
}

/// Warns if the environment gives another token, since that one takes precedence over the saved one.
void warn_of_other(const PairLine& line, const pairing::Secret& token) {
  std::string used = tokens::find_token(line.group, native::process_variable);
  if (!pairing::same_proof(used, token.view()))
    launch::print_error(
        "ringlet pair: RINGLET_TOKEN or RINGLET_TOKEN_FILE gives another token here, and goes before the saved one; unset it to use "
        "this one\n");
  OPENSSL_cleanse(used.data(), used.size());
}

int save_paired(const PairLine& line, NewcomerSession& session, pairing::PairingDialler& dialler) {
  std::string token(session.token().view());
  const bool saved =
      tokens::save_token(line.group, token, line.replace ? tokens::Replace::yes : tokens::Replace::no, native::process_variable);
  OPENSSL_cleanse(token.data(), token.size());
  if (!saved)
    return fail_pairing(kFailed,
                        fmt::format("a token for group {} has been saved meanwhile; --replace puts another in its place", line.group));
  trust_paired(line, session.host());
  session.confirm();
  dialler.finish();
  const std::string path = tokens::saved_token_path(line.group, native::process_variable);
  if (line.discovery.json)
    print_json({{"event", "paired"}, {"name", session.host().name}, {"group", line.group}, {"path", path}});
  else
    print_line(fmt::format("paired with {}: the token of group {} is saved in {}", session.host().name, line.group, path));
  warn_of_other(line, session.token());
  return 0;
}

}  // namespace

int run_pair_newcomer(const PairLine& line) {
  if (!line.replace && tokens::load_token(line.group, native::process_variable))
    return fail_pairing(kFailed, fmt::format("group {} has a token here already, '{}'; --replace puts another in its place", line.group,
                                             tokens::saved_token_path(line.group, native::process_variable)));
  UvLoop loop;
  const StopSignals signals(loop);
  std::optional<pairing::Secret> code;
  if (const auto stopped = ask_code(line, signals, code)) return *stopped;
  if (!code) return fail_pairing(kUsageError, "that is no code: type the 6 to 8 digits that the other machine shows");
  std::vector<Address> addresses;
  if (line.direct)
    addresses.push_back(*line.direct);
  else if (const auto over = Search(loop, line).run(signals, addresses))
    return *over;
  NewcomerSession session(line.group, paired_self(line), *code);
  pairing::PairingDialler dialler(loop, std::move(addresses), session);
  while (!dialler.settled() && !signals.came()) loop.wait();
  if (!dialler.settled()) return fail_pairing(signals.exit_code(), "stopped; nothing was saved");
  if (session.stage() != Stage::delivered) return explain(line, session, dialler.status());
  const int outcome = save_paired(line, session, dialler);
  while (outcome == 0 && !dialler.closed() && !signals.came()) loop.wait();
  return outcome;
}

}  // namespace ringlet::command
