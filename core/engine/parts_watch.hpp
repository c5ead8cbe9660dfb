#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/world.hpp"
#include "core/plan/link_speeds.hpp"

namespace ringlet {

struct PartsWatchOptions {
  Duration look = Duration::milliseconds(25);  // between two looks at the counters of the links
  Duration window = Duration::seconds(5);      // of which the fastest stretch of each link counts
  /// The least bytes of a stretch, and the least time in which its link was busy. A shaped link lets some bytes through at once after a
  /// pause, and Linux counts the time in ticks of up to 10 ms.
  ///@{
  std::uint64_t stretch_bytes = 512 << 10;
  Duration stretch_busy = Duration::milliseconds(100);
  ///@}
};

/// Lets parts follow what the links of a native rank carry while it trains: each rank looks at the counters that its links have anyway, and
/// tells rank 0 once in a window how fast each was; rank 0 changes the speeds of ranks whose links have become slower or faster
/// (SpeedRecord, PartsSwitch). Nothing is sent to measure, and links that carry little are not judged. For worlds of
/// WorldOptions::follows_speeds() whose ranks have met; ends by itself when the world fails. The world outlives it. Belongs to the loop's
/// thread.
class PartsWatch {
 public:
  /// `tell` is called on rank 0, with a line for people, when parts have changed.
  PartsWatch(EventLoop& loop, World& world, std::function<void(const std::string&)> tell, const PartsWatchOptions& options = {});
  ~PartsWatch();
  PartsWatch(const PartsWatch&) = delete;
  PartsWatch& operator=(const PartsWatch&) = delete;

 private:
  /// What is known of the link with one native rank or, in this rank's own place, of all links together.
  struct Peer {
    bool is_watched = false;
    SendCounters last{};
    SendCounters stretch{};
    std::uint32_t fastest_ps = 0;  // of a byte in this window; 0: not known
  };

  void schedule(Duration after);
  void tick();
  void take_inherited();
  void look();
  void add(Peer& peer, const SendCounters& since_last_look) const;
  void end_window();
  void on_rates(int from, const wire::LinkRates& rates);
  void judge();
  void change(const std::vector<std::uint32_t>& speeds, std::vector<SpeedChange> changes);
  /// By the speeds that are in use.
  Topology topology() const;
  /// What these speeds do not change, for people.
  std::string exception() const;
  void set_text(std::span<const SpeedChange> last);

  EventLoop& loop_;
  World& world_;
  const std::function<void(const std::string&)> tell_;
  const PartsWatchOptions options_;
  const int natives_;
  std::vector<Peer> peers_;              // by native rank
  std::vector<std::uint64_t> measured_;  // on rank 0: of this window, from rank i to rank j at i * natives + j
  std::optional<SpeedRecord> record_;    // on rank 0
  bool is_watching_ = false;             // any link
  // On rank 0: for how many windows no change is tried now, and after the next one that is taken back.
  int wait_ = 0, next_wait_ = 1;
  Instant looked_at_{}, window_began_{};
  TimerId timer_ = 0;
  AliveGuard guard_;
};

}  // namespace ringlet
