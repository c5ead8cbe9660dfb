#pragma once

#include <optional>
#include <random>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "tools/discovery/answer_limit.hpp"
#include "tools/discovery/beacon_schedule.hpp"
#include "tools/discovery/datagrams.hpp"
#include "tools/discovery/directory.hpp"

namespace ringlet::discovery {

struct DiscoveryOptions {
  /// The instance number and the jitter are derived from the seed. It must come from an unpredictable source, so that it differs between
  /// processes.
  std::uint64_t seed = 0;
  /// The contents of this machine's beacons without its interfaces, which are filled in. If unset, this machine only looks for others.
  std::optional<Profile> profile{};
  /// Called before each beacon, since free memory changes. May be empty.
  std::function<std::vector<Device>()> devices{};
  DirectoryLimits limits{};
};

/// Announces this machine and finds the others. Belongs to the loop's thread.
///
/// A machine that announces itself sends its presence according to a BeaconSchedule and answers queries. One that only looks sends queries
/// at the start of the same schedule, and then listens. Both send queries to named peers every second. A machine that has fallen silent is
/// asked directly before it counts as gone. An answer to a query tells of other machines; those of which a named peer tells are asked, too,
/// so that where multicast is blocked one peer is enough to find all that it hears.
class Discovery final : public DatagramUser {
 public:
  /// Called for changes of the directory, but never during a call of a member of this class.
  using OnChange = Directory::OnChange;

  /// `loop` and `datagrams` must outlive this object.
  Discovery(EventLoop& loop, Datagrams& datagrams, DiscoveryOptions options, OnChange on_change);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  /// Call this at most once.
  void start();
  /// Changes the contents of this machine's beacons and sends them immediately, followed by another burst. Requires a profile in the
  /// options.
  void announce(Profile profile);
  /// Sends a goodbye if this machine has announced itself. Nothing is sent or called afterwards.
  void leave();

  const Directory& directory() const noexcept { return directory_; }
  std::uint64_t instance() const noexcept { return instance_; }
  /// The addresses of which named peers have told, and that have not answered.
  std::vector<IpAddress> unanswered() const;
  /// Tells whether any of this machine's own datagrams came back by multicast. They do unless something blocks multicast.
  bool heard_itself() const noexcept { return heard_itself_; }

 private:
  void datagram_came(const DatagramSource& from, ConstBytes bytes) override;
  void interfaces_changed() override;
  void hear_itself(const Beacon& beacon);
  void answer(const Beacon& query, const DatagramSource& from, std::size_t query_bytes);
  std::vector<IpAddress> known_to(const DatagramSource& asker, std::uint64_t first) const;
  void follow(const std::vector<IpAddress>& known, const DatagramSource& from, std::size_t bytes);
  void ask_introduced();
  void remember_asker(const DatagramSource& from);
  void turn();
  void send_beacons();
  void ask_silent();
  void set_timer();
  void renew_instance();
  Beacon next_beacon(Beacon::Kind kind);
  Beacon presence();

  EventLoop& loop_;
  Datagrams& datagrams_;
  DiscoveryOptions options_;
  std::mt19937_64 random_;
  Directory directory_;
  BeaconSchedule schedule_;
  AnswerLimit answers_;
  struct Asker {
    DatagramSource source;
    Instant last;
  };
  std::vector<Asker> askers_;  // machines answered lately, which get a goodbye
  /// A machine of which a named peer has told.
  struct Introduced {
    DatagramSource source;
    std::size_t bytes = 0;  // of the queries
    int queries_left = 0;
    Instant first;
  };
  std::vector<Introduced> introduced_;
  std::uint64_t instance_ = 0;
  std::uint64_t sequence_ = 0;
  TimerId timer_ = 0;
  bool running_ = false;
  bool heard_itself_ = false;
};

}  // namespace ringlet::discovery
