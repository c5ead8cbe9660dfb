#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/datagrams/uv_datagrams.hpp"
#include "tools/discovery/discovery.hpp"

namespace ringlet::agent {

struct SearchOptions {
  std::string group;
  std::vector<std::string> names{};  // who is wanted; empty: everyone in the group
  int at_least = 1;                  // machines
  Duration wait = Duration::seconds(5);
  UvDatagramsOptions datagrams{};
  std::uint64_t seed = 0;  // as in DiscoveryOptions
};

/// A machine that takes connections.
struct FoundMachine {
  std::string name;
  std::vector<Address> addresses;  // where its agent listens, the likeliest first
  std::string meeting_host;        // its address as other machines reach it
};

/// Where its agent is to be reached, as far as its beacons show, the likeliest first.
std::vector<Address> addresses_of(const discovery::Machine& machine);

/// Looks for the machines that are up in a group, until those who are wanted are there, or, where nobody was named, until enough are there
/// and nobody new has come for a while. Belongs to the loop's thread.
class MachineSearch {
 public:
  /// `loop` outlives it.
  MachineSearch(UvLoop& loop, SearchOptions options);
  ~MachineSearch();
  MachineSearch(const MachineSearch&) = delete;
  MachineSearch& operator=(const MachineSearch&) = delete;

  /// Why nothing can be heard.
  Status start();
  /// Nothing more is waited for: all are there, or the time is over.
  bool over() const noexcept { return over_; }
  /// By name, then by the number of the process.
  std::vector<FoundMachine> machines() const;
  /// What is missing of what was wanted, as a sentence with advice; nothing where enough is there. Machines that are up without an agent
  /// are named.
  std::optional<std::string> find_lack() const;

 private:
  std::vector<const discovery::Machine*> suitable() const;
  bool wants(const discovery::Machine& machine) const;
  void look();
  std::string interface_names() const;

  UvLoop& loop_;
  const SearchOptions options_;
  UvDatagrams datagrams_;
  discovery::Discovery discovery_;
  TimerId settle_timer_ = 0, end_timer_ = 0;
  bool over_ = false;
};

}  // namespace ringlet::agent
