#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.hpp"
#include "tools/discovery/beacon.hpp"

namespace ringlet::discovery {

/// An address from which a machine's beacons come.
struct Sighting {
  DatagramSource from;
  Instant last;
};

/// A process that announces itself.
struct Machine {
  std::uint64_t instance = 0;
  Profile profile;
  Instant first_heard;
  Instant last_heard;               // arrival of the last beacon that was new
  std::vector<Sighting> sightings;  // at most kMaxSightings, one per address
  std::uint64_t sequence = 0;
  std::uint32_t beacons = 0;  // number of new beacons
  Instant last_asked;
};

inline constexpr std::size_t kMaxSightings = 4;

/// Returns the address at which the machine can most likely be reached, according to its beacons.
const DatagramSource& best_source(const Machine& machine);

/// A query to be sent. It is padded to the length of the expected answer, but hardly longer than the beacons that came from that address.
/// So forged beacons cannot make this machine send much to a third party's address.
struct BeaconQuery {
  DatagramSource to;
  std::size_t bytes = 0;
};

enum class Change : std::uint8_t { appeared, changed, left };

struct DirectoryLimits {
  std::size_t machines = 256;
  std::size_t machines_per_address = 16;
  std::size_t departed = 512;                         // gone machines whose last sequence number is kept, to detect replays
  Duration silence = Duration::milliseconds(4'000);   // after this a machine counts as gone
  Duration patience = Duration::milliseconds(1'300);  // after this a machine is asked
  Duration probation = Duration::milliseconds(500);   // a machine may take this long to become established
  std::uint32_t established_beacons = 3;
};

/// The machines that are present according to their beacons. Beacons prove nothing, so the effect of forged ones is limited:
/// - A beacon counts once. One whose sequence number is not above the instance's last one is ignored, whether it was delayed, duplicated
///   or replayed. This also holds for a while after the machine has left.
/// - One address may have a limited number of machines. Further ones are refused.
/// - If the directory is full, a new machine replaces one that has not become established in time, or the latest of the address that has
/// the
///   most machines, if it has two more than the new one's. If there is none to replace, the new one is refused. So the only machine of an
///   address that is established is never replaced. A machine is established by three beacons, which it sends in its first 0.3 s.
class Directory {
 public:
  /// The machine is borrowed for the call, which must not change the directory. A change of its free memory alone is not reported.
  using OnChange = std::function<void(Change, const Machine&)>;

  explicit Directory(OnChange on_change, DirectoryLimits limits = {}) : limits_(limits), on_change_(std::move(on_change)) {}

  /// Takes a presence or a goodbye. Returns whether it was new.
  bool take(const Beacon& beacon, const DatagramSource& from, Instant now);
  /// Removes machines that have been silent for too long.
  void expire(Instant now);
  /// Returns queries for machines that have been silent for a while, one per second for each.
  std::vector<BeaconQuery> ask_silent(Instant now);
  /// Returns the next time at which expire() or ask_silent() has work if no beacon comes before.
  std::optional<Instant> next_deadline() const;

  /// Whether beacons of a machine come from this address.
  bool hears(const IpAddress& address) const;
  /// Returns all machines by instance.
  const std::map<std::uint64_t, Machine>& machines() const noexcept { return machines_; }
  /// Returns the machines that are wanted by name, then by instance.
  std::vector<const Machine*> find(const std::function<bool(const Machine&)>& wanted) const;

 private:
  using Place = std::map<std::uint64_t, Machine>::iterator;
  bool admit(const Beacon& beacon, const DatagramSource& from, Instant now);
  bool make_room(const IpAddress& address, Instant now);
  Place find_replaceable(const std::map<IpAddress, std::size_t>& count, std::size_t own, Instant now);
  void remove(Place place);
  Instant next_question(const Machine& machine) const;

  const DirectoryLimits limits_;
  OnChange on_change_;
  std::map<std::uint64_t, Machine> machines_;
  struct Departed {
    std::uint64_t instance;
    std::uint64_t sequence;
  };
  std::deque<Departed> departed_;
};

/// Names the machines that are up in other groups than `group`, by group, such as "attic (a), home (b, c)". Empty if there are none.
std::string describe_other_groups(const Directory& directory, const std::string& group);

}  // namespace ringlet::discovery
