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
  /// From which the instance's number and the jitter are made; from a source that nobody can foretell, so that it is another in each
  /// process.
  std::uint64_t seed = 0;
  /// What to say of this machine; nothing: only to look. The interfaces are filled in.
  std::optional<Profile> profile{};
  /// Asked before each beacon, since free memory changes; may be empty.
  std::function<std::vector<Device>()> devices{};
  DirectoryLimits limits{};
};

/// Announces this machine and finds the others. Belongs to the loop's thread.
///
/// Announcing, it sends its presence by a BeaconSchedule and answers queries; looking, it asks by the same schedule in its beginning, and
/// then listens. Named peers are asked each second either way. A machine that has fallen silent is asked directly before it counts as gone.
class Discovery final : public DatagramUser {
 public:
  /// The directory's changes; never called inside a member of this class.
  using OnChange = Directory::OnChange;

  /// `loop` and `datagrams` outlive it.
  Discovery(EventLoop& loop, Datagrams& datagrams, DiscoveryOptions options, OnChange on_change);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  /// Once.
  void start();
  /// From now on this is said, at once and with another burst; only where there was a profile from the start.
  void announce(Profile profile);
  /// Says goodbye, where it had announced itself. Nothing is sent or called after it.
  void leave();

  const Directory& directory() const noexcept { return directory_; }
  std::uint64_t instance() const noexcept { return instance_; }
  /// Whether any of its own datagrams came back by multicast, as they do where nothing stands in the way.
  bool heard_itself() const noexcept { return heard_itself_; }

 private:
  void datagram_came(const DatagramSource& from, ConstBytes bytes) override;
  void interfaces_changed() override;
  void hear_itself(const Beacon& beacon);
  void answer(const Beacon& query, const DatagramSource& from, std::size_t query_bytes);
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
  std::vector<Asker> askers_;  // who was answered lately, to say goodbye to
  std::uint64_t instance_ = 0;
  std::uint64_t sequence_ = 0;
  TimerId timer_ = 0;
  bool running_ = false;
  bool heard_itself_ = false;
};

}  // namespace ringlet::discovery
