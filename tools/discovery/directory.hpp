#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/base/time.hpp"
#include "tools/discovery/beacon.hpp"

namespace ringlet::discovery {

/// From where a machine's beacons come.
struct Sighting {
  DatagramSource from;
  Instant last;
};

/// A process that announces itself.
struct Machine {
  std::uint64_t instance = 0;
  Profile profile;
  Instant first_heard;
  Instant last_heard;               // the last time it said something new
  std::vector<Sighting> sightings;  // at most kMaxSightings, one per address
  std::uint64_t sequence = 0;
  std::uint32_t beacons = 0;  // how many were new
  Instant last_asked;
};

inline constexpr std::size_t kMaxSightings = 4;

/// The address at which this machine can best be reached, as far as its beacons show.
const DatagramSource& best_source(const Machine& machine);

/// To whom a query goes, and how long it is: long enough for the answer that is expected, and hardly longer than what came from there, so
/// that nobody can have us send much to an address that is not theirs.
struct Question {
  DatagramSource to;
  std::size_t bytes = 0;
};

enum class Change : std::uint8_t { appeared, changed, left };

struct DirectoryLimits {
  std::size_t machines = 256;
  std::size_t machines_per_address = 16;
  std::size_t departed = 512;                         // whose last sequence number is kept, against replays
  Duration silence = Duration::milliseconds(4'000);   // after which a machine counts as gone
  Duration patience = Duration::milliseconds(2'200);  // after which it is asked
  Duration probation = Duration::milliseconds(500);   // how long a machine may take to become established
  std::uint32_t established_beacons = 3;
};

/// Who is here. Believes what beacons say, since nothing in them is proved, but lets nobody take more of its memory than the limits say:
/// - A beacon counts once: a sequence number that is not above the instance's last is old news, whether delayed, doubled or replayed. This
///   holds for a while after the machine has left, too.
/// - From one address come no more than so many machines; further ones are refused.
/// - Where the directory is full, a new machine takes the place of one that has not become established in time (three beacons, which a
///   machine sends in its first 0.3 s), never that of an established one; else it is refused.
class Directory {
 public:
  /// `machine` is borrowed for the call, which may not change the directory. A machine whose free memory alone is another has not changed.
  using OnChange = std::function<void(Change, const Machine&)>;

  explicit Directory(OnChange on_change, DirectoryLimits limits = {}) : limits_(limits), on_change_(std::move(on_change)) {}

  /// A presence or a goodbye. Whether it was news.
  bool take(const Beacon& beacon, const DatagramSource& from, Instant now);
  /// Drops those that have been silent for too long.
  void expire(Instant now);
  /// Those who have been silent for a while and are to be asked; each once a second.
  std::vector<Question> ask_silent(Instant now);
  /// When expire() or ask_silent() has something to do next, if nothing comes until then.
  std::optional<Instant> next_deadline() const;

  /// By instance.
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
