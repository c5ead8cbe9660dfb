#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/elastic/growth.hpp"
#include "core/engine/procedure.hpp"

namespace ringlet {

/// The collectives by which all ranks of a world begin to form the next one, in which those are that they have chosen at their doors: each
/// tells how many these are, and rank 0 where it listens as the coordinator. Whoever drives it meets the others and sends the tickets.
class BeginGrowth final : public Procedure {
 public:
  struct Calls {
    /// On rank 0: begins to meet the others, and returns the port at which it listens, or 0 where it cannot.
    std::function<std::uint16_t(const GrowthPlan& plan)> listen;
    /// On the other ranks: begins to meet the others at that port; where it is 0, the growth has failed.
    std::function<void(const GrowthPlan& plan, std::uint16_t port)> meet;
    /// Tells those at this rank's door where they meet the others. It is not called where rank 0 does not listen.
    std::function<void(const GrowthPlan& plan, std::uint16_t port)> send_tickets;
  };

  /// `world` are the options of the group of all ranks, and outlive this object. No guests are among them. `own` is at most what
  /// most_to_choose() says.
  BeginGrowth(const WorldOptions& world, int largest_size, const GrowthShare& own, Calls calls)
      : world_(world), largest_size_(largest_size), own_(own), calls_(std::move(calls)), shares_(static_cast<std::size_t>(world.size)) {}
  Action next() override;

 private:
  enum class Stage : std::uint8_t { shares, port, end };

  const WorldOptions& world_;
  const int largest_size_;
  const GrowthShare own_;
  const Calls calls_;
  Stage stage_ = Stage::shares;
  std::vector<GrowthShare> shares_;  // by rank
  std::optional<GrowthPlan> plan_;
  std::int32_t port_ = 0;
};

}  // namespace ringlet
