#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/elastic.hpp>
#include <string>
#include <vector>

#include "core/elastic/hand_over.hpp"
#include "core/elastic/signals.hpp"
#include "native/elastic/elastic_shards.hpp"
#include "native/elastic/world_averages.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

struct ElasticTrainer::State {
  using Clock = std::chrono::steady_clock;
  State(Group group, Checkpoint contents, ElasticShards::State* held, ElasticTrainerOptions o)
      : world(std::move(group)),
        checkpoint(std::move(contents)),
        shards(held),
        options(std::move(o)),
        min_ranks(read_min_ranks(options)),
        lacks(shared().has_joined()) {}

  native::SharedGroup& shared() const { return world.shared(); }
  /// The ranks that have files.
  Group& natives() { return without_guests ? *without_guests : world; }
  CallOptions call() const { return {.stream = options.average.stream}; }
  void settle();
  void make_states_equal();
  void require_same_plan() const;
  EntryStanding standing() const;
  void form_natives();
  void sync();
  bool load();
  void go_back(const std::string& lost);
  Checkpoint on_disk();
  void lose_state();
  void forget_residuals();
  void attempt(ElasticTrainer& trainer, const std::function<void(Step&)>& step_function);
  void save_if_due();
  void save();
  bool is_short() const { return shared().elastic() && world.size() - world.guests() < least_ranks; }
  void await_min_ranks();
  void vote();
  void grow();
  bool names_joined_rank(const Error& error) const;
  void exclude(int rank);
  bool goes_on_after(const Error& error) const;
  void recover(const Error& error);
  void rejoin(const PeerLost& lost);

  Group world;
  Checkpoint checkpoint;
  ElasticShards::State* const shards;  // null: all state is whole
  const ElasticTrainerOptions options;
  const MinRanks min_ranks;
  bool is_outer = false;  // it is an OuterTrainer's: each step is an average
  TrainingPlan plan;
  int least_ranks = 1;  // the most that a native rank's min_ranks demands
  std::uint64_t step = 0;
  int interruptions = 0;               // before run()
  std::uint64_t saved = 0;             // the step of the newest checkpoint that all ranks know of, or at which the training began
  bool is_new_world = false;           // on_world has not run in it
  bool is_settled = false;             // once all ranks had the same state
  std::vector<EntryStanding> entered;  // what the native ranks have told in this world; empty once they have committed a step in it
  bool lacks;                          // this rank's state is not whole
  bool is_applying = false;            // stays so where the program's function has thrown
  bool is_replaced = false;            // since on_state ran last
  Residuals residuals;                 // of this rank's gradients, as of the last committed step
  std::unique_ptr<native::WorldAverages> averages;
  std::optional<Group> without_guests;
  Signals signals;  // the least of all ranks, at the last vote
  Status lost_last;
  std::optional<Clock::time_point> waits_until;  // while there are fewer than min_ranks
};

}  // namespace ringlet
