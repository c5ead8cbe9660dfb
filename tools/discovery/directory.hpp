#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
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
  Instant last_heard;               // the last time that a new beacon of it came
  std::vector<Sighting> sightings;  // at most kMaxSightings, one per address
  std::uint64_t sequence = 0;
  std::uint32_t beacons = 0;  // that were new
  Instant last_asked;
};

inline constexpr std::size_t kMaxSightings = 4;

/// The address at which this machine can probably be reached best, judged by its beacons.
const DatagramSource& best_source(const Machine& machine);

/// A query that is to be sent. It is padded to the length of the answer that is expected, and is hardly longer than the beacons that came
/// from that address, so that forged beacons cannot make this machine send much to somebody else's address.
struct BeaconQuery {
  DatagramSource to;
  std::size_t bytes = 0;
};

enum class Change : std::uint8_t { appeared, changed, left };

struct DirectoryLimits {
  std::size_t machines = 256;
  std::size_t machines_per_address = 16;
  std::size_t departed = 512;                         // machines whose last sequence number is kept, against replays
  Duration silence = Duration::milliseconds(4'000);   // after which a machine counts as gone
  Duration patience = Duration::milliseconds(2'200);  // after which it is asked
  Duration probation = Duration::milliseconds(500);   // how long a machine may take to become established
  std::uint32_t established_beacons = 3;
};

/// The machines that are there, as their beacons say. Beacons prove nothing, so what anybody can do by sending them is limited:
/// - A beacon counts once: one whose sequence number is not above the instance's last is ignored, whether it was delayed, doubled or
/// replayed.
///   This holds for a while after the machine has left, too.
/// - One address may have a limited number of machines; further ones are refused.
/// - Where the directory is full, a new machine takes the place of one that has not become established in time (by three beacons, which a
///   machine sends in its first 0.3 s), never that of an established one; otherwise it is refused.
class Directory {
 public:
  /// The machine is borrowed for the call, which may not change the directory. A machine that differs in its free memory alone has not
  /// changed.
  using OnChange = std::function<void(Change, const Machine&)>;

  explicit Directory(OnChange on_change, DirectoryLimits limits = {}) : limits_(limits), on_change_(std::move(on_change)) {}

  /// Takes a presence or a goodbye. Returns whether it was new.
  bool take(const Beacon& beacon, const DatagramSource& from, Instant now);
  /// Drops machines that have been silent for too long.
  void expire(Instant now);
  /// Queries for machines that have been silent for a while; one a second for each.
  std::vector<BeaconQuery> ask_silent(Instant now);
  /// The next time at which expire() or ask_silent() has something to do, if nothing comes until then.
  std::optional<Instant> next_deadline() const;

  /// All machines, by instance.
  const std::map<std::uint64_t, Machine>& machines() const noexcept { return machines_; }

 private:
  using Place = std::map<std::uint64_t, Machine>::iterator;
  bool admit(const Beacon& beacon, const DatagramSource& from, Instant now);
  bool make_room(const IpAddress& address, Instant now);
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

}  // namespace ringlet::discovery
