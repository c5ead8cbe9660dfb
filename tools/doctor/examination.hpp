#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/base/result.hpp"
#include "tools/agent/path_probe.hpp"
#include "tools/datagrams/uv_datagrams.hpp"
#include "tools/discovery/discovery.hpp"
#include "tools/doctor/facts.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::doctor {

struct ExaminationOptions {
  std::string name, version;
  std::string group{};                            // the group to examine; empty for all
  std::string token{};                            // empty if there is none
  std::optional<agent::LinkIdentity> identity{};  // of this machine; needed with a token
  /// Says why a machine of this group with this name and key is not trusted here; an empty text where it is.
  std::function<std::string(const std::string& group, const std::string& name, const machines::PublicKey& key)> find_doubt{};
  UvDatagramsOptions datagrams{};
  std::vector<std::string> peers{};  // as given on the command line, in addition to datagrams.peers
  Duration listening = Duration::seconds(2);
  std::uint64_t seed = 0;                                 // as in DiscoveryOptions
  bool matrix = true;                                     // whether the machines are asked to measure their paths to each other
  std::function<void(const std::string&)> on_progress{};  // called with a text for people before each part
  std::function<bool()> stopped{};                        // asked repeatedly whether to end early
};

/// Finds out what can be known from this machine: its interfaces, which machines are heard and answer, and the state of each path to them.
/// Blocks for some seconds. Belongs to the loop's thread.
class Examination {
 public:
  /// `loop` must outlive this object.
  Examination(UvLoop& loop, ExaminationOptions options);

  /// Fails if no datagram can be received.
  Result<Facts> run();

 private:
  struct Heard {
    discovery::Machine machine;
    bool by_multicast = false;
  };
  Status listen(bool named);
  void note_peers();
  void note_machines();
  std::vector<Address> ways_to(const discovery::Machine& machine) const;
  void examine(MachineFacts& facts, const discovery::Machine& machine);
  void measure(MachineFacts& facts, PathFacts& path);
  agent::ProbeEnds ends_of(const MachineFacts& machine) const;
  void measure_matrix();
  MatrixRow ask_for_row(const MachineFacts& machine, const std::vector<const MachineFacts*>& reached);
  void tell(const std::string& what) const;
  bool stopped() const { return options_.stopped && options_.stopped(); }
  /// Turns the loop until the condition holds or the examination must end.
  void run_until(const std::function<bool()>& condition);

  UvLoop& loop_;
  const ExaminationOptions options_;
  UvNetwork network_;
  TokenAuthenticator authenticator_;
  Facts facts_;
  std::map<std::uint64_t, Heard> heard_;  // by instance
};

}  // namespace ringlet::doctor
