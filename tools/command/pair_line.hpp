#pragma once

#include <optional>
#include <string>

#include "core/base/time.hpp"
#include "tools/command/discovery_line.hpp"
#include "tools/pairing/message.hpp"

namespace ringlet::command {

/// The options of `ringlet pair`.
struct PairLine {
  DiscoveryLine discovery;
  UvDatagramsOptions datagrams;
  std::string group = "home";
  std::string name;
  std::size_t digits = 8;
  double valid_seconds = 120;
  Duration validity{};
  bool join = false;
  bool replace = false;
  bool qr = false;
  std::optional<std::string> code_file;
  double wait_seconds = 10;
  Duration wait{};
  std::optional<Address> direct;  // the only peer, if it was given with its port
};

inline constexpr int kFailed = 1, kNobodyCame = 3, kCodeRefused = 4;

/// Return this machine as it pairs, and remember the other one by its key.
pairing::PairedMachine paired_self(const PairLine& line);
void trust_paired(const PairLine& line, const pairing::PairedMachine& other);

/// Tells why, on stderr, and returns the exit code.
int fail_pairing(int code, const std::string& text);

/// These return the exit code.
int run_pair_host(const PairLine& line);
int run_pair_newcomer(const PairLine& line);
int run_pair_qr(const PairLine& line);

}  // namespace ringlet::command
