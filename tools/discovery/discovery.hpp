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
  /// The instance's number and the jitter are made from it. It comes from a source that nobody can foretell, and so differs between
  /// processes.
  std::uint64_t seed = 0;
  /// The contents of this machine's beacons, without its interfaces, which are filled in. Unset: this machine looks for others only.
  std::optional<Profile> profile{};
  /// Called before each beacon, since free memory changes; may be empty.
  std::function<std::vector<Device>()> devices{};
  DirectoryLimits limits{};
};

/// Announces this machine and finds the others. Belongs to the loop's thread.
///
/// A machine that announces itself sends its presence by a BeaconSchedule and answers queries. One that only looks asks at the beginning of
/// the same schedule, and then listens. Both ask named peers each second. A machine that has fallen silent is asked directly before it
/// counts as gone.
class Discovery final : public DatagramUser {
 public:
  /// Called for the directory's changes, never inside a member of this class.
  using OnChange = Directory::OnChange;

  /// `loop` and `datagrams` outlive it.
  Discovery(EventLoop& loop, Datagrams& datagrams, DiscoveryOptions options, OnChange on_change);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  /// May be called once.
  void start();
  /// Changes the contents of this machine's beacons, and sends them at once, with another burst. Only where there was a profile from the
  /// start.
  void announce(Profile profile);
  /// Sends a goodbye, where this machine has announced itself. Nothing is sent or called afterwards.
  void leave();

  const Directory& directory() const noexcept { return directory_; }
  std::uint64_t instance() const noexcept { return instance_; }
  /// Whether any of its own datagrams came back by multicast. They do where nothing blocks multicast.
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
  std::vector<Asker> askers_;  // were answered lately, and get a goodbye
  std::uint64_t instance_ = 0;
  std::uint64_t sequence_ = 0;
  TimerId timer_ = 0;
  bool running_ = false;
  bool heard_itself_ = false;
};

}  // namespace ringlet::discovery
