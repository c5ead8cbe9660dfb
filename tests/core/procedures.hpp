#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/engine/procedure_run.hpp"
#include "core/gradients/agreements.hpp"
#include "tests/core/sim_group.hpp"

namespace ringlet::test {

/// Runs the core's procedures on every rank of a simulated world. Completions drive them.
class ProcedureWorld {
 public:
  explicit ProcedureWorld(const GroupSetup& setup)
      : group_(setup), agreements_(static_cast<std::size_t>(setup.size)), statuses_(agreements_.size()) {
    group_.meet();
  }

  int size() const { return group_.size(); }
  SimGroup& group() { return group_; }
  GroupEngine& engine(int rank) { return group_.world(rank).group(); }
  Agreements& agreements(int rank) { return agreements_[static_cast<std::size_t>(rank)]; }
  /// Returns how the rank's last procedure ended; nothing while it has not.
  const std::optional<Status>& status(int rank) const { return statuses_[static_cast<std::size_t>(rank)]; }

  void start(int rank, std::shared_ptr<Procedure> procedure, std::vector<GroupEngine*> groups, std::uint16_t stream = 0) {
    auto& status = statuses_[static_cast<std::size_t>(rank)];
    status.reset();
    run_procedure(group_.node(rank).loop(), std::move(procedure), std::move(groups), stream, [&status](const Status& ended) {
      if (status.has_value()) throw std::runtime_error("a procedure completed twice");
      status = ended;
    });
    if (status.has_value()) throw std::runtime_error("a procedure completed inside the call that started it");
  }

  /// Runs the procedures that `make` returns for each rank until all have ended. Returns false where virtual time ran out.
  bool run(const std::function<std::shared_ptr<Procedure>(int rank)>& make) {
    for (int rank = 0; rank < size(); ++rank) start(rank, make(rank), {&engine(rank)});
    return run_until_ended();
  }
  bool run_until_ended() {
    return group_.sim().run_until(
               [&] { return std::all_of(statuses_.begin(), statuses_.end(), [](const auto& status) { return status.has_value(); }); },
               {.time = Duration::seconds(3000)}) == RunEnd::done;
  }
  /// Returns the first failure; empty where every rank's last procedure ended well.
  std::string failure() const {
    for (const auto& status : statuses_) {
      if (!status) return "a rank has not ended";
      if (!status->ok()) return status->text();
    }
    return {};
  }

 private:
  SimGroup group_;
  std::vector<Agreements> agreements_;
  std::vector<std::optional<Status>> statuses_;
};

}  // namespace ringlet::test
