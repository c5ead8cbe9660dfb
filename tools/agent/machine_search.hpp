#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/datagrams/uv_datagrams.hpp"
#include "tools/discovery/discovery.hpp"

namespace ringlet::agent {

struct SearchOptions {
  std::string group;
  std::vector<std::string> names{};  // the wanted machines; empty: all of the group
  int at_least = 1;                  // machines
  Duration wait = Duration::seconds(5);
  UvDatagramsOptions datagrams{};
  std::uint64_t seed = 0;  // as in DiscoveryOptions
};

/// A machine that takes connections.
struct FoundMachine {
  std::uint64_t instance = 0;  // of its `ringlet up`
  std::string name;
  std::vector<Address> addresses;  // where its agent listens, the likeliest first
  std::string meeting_host;        // its address as other machines reach it
};

/// The addresses at which this port of the machine may be reached, as far as its beacons show, the likeliest first.
std::vector<Address> addresses_of(const discovery::Machine& machine, std::uint16_t port);

/// "eth0, wlan0", or "no interface".
std::string names_of(const std::vector<NetworkInterface>& interfaces);

/// Looks for the machines that are up in a group, until the wanted ones are found, or, where none was named, until enough are found and no
/// new one has come for a while. Belongs to the loop's thread.
class MachineSearch {
 public:
  /// `loop` outlives it.
  MachineSearch(UvLoop& loop, SearchOptions options);
  ~MachineSearch();
  MachineSearch(const MachineSearch&) = delete;
  MachineSearch& operator=(const MachineSearch&) = delete;

  /// Fails where no datagram can be received.
  Status start();
  /// Whether the search has ended: all machines are found, or the time is over. Machines that come later are among machines(), too.
  bool over() const noexcept { return over_; }
  /// Sorted by name, then by the number of the process.
  std::vector<FoundMachine> machines() const;
  /// A sentence about machines of which others have told, and that do not answer; nothing where there are none.
  std::optional<std::string> find_unanswered() const;
  /// A sentence with advice that names the missing machines; nothing where enough are found. It also names machines that are up without an
  /// agent.
  std::optional<std::string> find_lack() const;

 private:
  std::vector<const discovery::Machine*> suitable() const;
  bool wants(const discovery::Machine& machine) const;
  void look();

  UvLoop& loop_;
  const SearchOptions options_;
  UvDatagrams datagrams_;
  discovery::Discovery discovery_;
  TimerId settle_timer_ = 0, end_timer_ = 0;
  bool over_ = false;
};

}  // namespace ringlet::agent
