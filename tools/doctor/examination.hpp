#pragma once

#include <functional>
#include <map>
#include <memory>

#include "tools/agent/path_probe.hpp"
#include "tools/datagrams/uv_datagrams.hpp"
#include "tools/discovery/discovery.hpp"
#include "tools/doctor/facts.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::doctor {

struct ExaminationOptions {
  std::string name, version;
  std::string group{};  // whose machines to look at; empty: all
  std::string token{};  // empty: none
  UvDatagramsOptions datagrams{};
  std::vector<std::string> peers{};  // as they were given, beside datagrams.peers
  Duration listening = Duration::seconds(2);
  std::uint64_t seed = 0;                                 // as in DiscoveryOptions
  bool matrix = true;                                     // whether the machines are asked to measure their ways to each other
  std::function<void(const std::string&)> on_progress{};  // what comes next, for people
  std::function<bool()> stopped{};                        // asked now and then: whether to end early
};

/// Finds out what can be known from this machine: its interfaces, who is heard, who answers, how far one gets on each way. Blocks, for some
/// seconds; belongs to the thread that has the loop.
class Examination {
 public:
  /// `loop` outlives it.
  Examination(UvLoop& loop, ExaminationOptions options);

  Facts run();

 private:
  struct Heard {
    discovery::Machine machine;
    bool by_multicast = false;
  };
  void listen(bool named);
  void note_peers();
  void note_machines();
  std::vector<Address> ways_to(const discovery::Machine& machine) const;
  void examine(MachineFacts& facts, const discovery::Machine& machine);
  void measure(MachineFacts& facts, PathFacts& path);
  void measure_matrix();
  MatrixRow ask_for_row(const MachineFacts& machine, const std::vector<const MachineFacts*>& reached);
  void tell(const std::string& what) const;
  bool stopped() const { return options_.stopped && options_.stopped(); }
  /// Turns the loop until then, or the end.
  void run_until(const std::function<bool()>& condition);

  UvLoop& loop_;
  const ExaminationOptions options_;
  UvNetwork network_;
  TokenAuthenticator authenticator_;
  Facts facts_;
  std::map<std::uint64_t, Heard> heard_;  // by instance
};

}  // namespace ringlet::doctor
