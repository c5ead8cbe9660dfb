#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/elastic/epochs.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/sim_group.hpp"

namespace ringlet::test {

using Origins = std::vector<int>;  // members by their ranks in the first epoch

/// What a rank has learned: the members of each epoch of each lineage.
using Records = std::map<std::pair<std::uint64_t, std::uint32_t>, Origins>;

inline constexpr std::int32_t kEpochs = 10'000;

/// Sums of all sizes, so that all algorithms take part.
inline void fill(std::vector<std::int32_t>& values, std::int32_t mark, int origin) {
  values.resize(SimRandom(static_cast<std::uint64_t>(mark)).below(3000));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1 << origin : mark;
}

inline void check_sum(const std::vector<std::int32_t>& values, std::int32_t mark, const Origins& members, int origin) {
  std::int32_t all = 0;
  for (const int member : members) all |= 1 << member;
  const std::int32_t marks = mark * static_cast<std::int32_t>(members.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != (i % 2 == 0 ? all : marks)) FAIL("rank " << origin << " has " << values[i] << " at " << i);
}

/// Without pauses there would be too many sums in the seconds for which some tests run.
inline Duration pause_after(int done) { return done < 30 ? Duration::microseconds(done * 7) : Duration::milliseconds(50); }

/// A guest, which adds until its world ends.
class Visitor {
 public:
  Visitor(SimGroup& group, int rank) : loop_(group.node(rank).loop()), origin_(rank), world_(group.take_world(rank)) {
    for (int member = 0; member < group.size(); ++member) members_.push_back(member);
    add();
  }
  const World& world() const { return *world_; }
  const std::optional<Status>& failure() const { return failure_; }

 private:
  void add() {
    fill(values_, done_, origin_);
    auto task = make_all_reduce(ReduceOp::sum, values_, values_, 1, world_->group().options());
    task.value().completion = [this](const Status& status) { on_done(status); };
    world_->group().start(0, std::move(task).value());
  }
  void on_done(const Status& status) {
    if (!status.ok()) {
      failure_ = status;
      values_ = {};
      return loop_.defer(guard_.wrap([this] { world_->close([] {}); }));
    }
    check_sum(values_, done_, members_, origin_);
    ++done_;
    loop_.after(pause_after(done_), guard_.wrap([this] { add(); }));
  }

  EventLoop& loop_;
  const int origin_;
  std::unique_ptr<World> world_;
  Origins members_;
  std::vector<std::int32_t> values_;
  std::optional<Status> failure_;
  std::int32_t done_ = 0;
  AliveGuard guard_;
};

/// A rank that adds in every epoch, again and again, and goes on in the next one.
class Survivor {
 public:
  Survivor(SimGroup& group, int rank, EpochsOptions options)
      : loop_(group.node(rank).loop()), origin_(rank), epochs_(loop_, group.take_world(rank), std::move(options)) {
    for (int member = 0; member < group.size(); ++member) members_.push_back(member);
    world_ = &epochs_.world();
    add();
  }

  World& world() { return *world_; }
  Epochs& epochs() { return epochs_; }
  const Origins& members() const { return members_; }
  const Records& records() const { return records_; }
  std::uint64_t lineage() const { return lineage_; }
  bool left_out() const { return left_out_; }
  /// How many sums this epoch has done.
  int done() const { return done_; }
  const std::vector<Status>& failures() const { return failures_; }
  int pending() const { return pending_; }

 private:
  std::int32_t mark() const { return static_cast<std::int32_t>(world_->options().epoch) * kEpochs + done_; }

  void add() {
    fill(values_, mark(), origin_);
    auto task = make_all_reduce(ReduceOp::sum, values_, values_, 1, world_->group().options());
    task.value().timeout = Duration::seconds(100);
    task.value().completion = [this](const Status& status) { on_done(status); };
    ++pending_;
    world_->group().start(0, std::move(task).value());
  }

  void on_done(const Status& status) {
    --pending_;
    if (!status.ok()) {
      failures_.push_back(status);
      values_ = {};  // nothing may write there any more
      return epochs_.when_succeeded(*world_, [this](const Succession& succession) { go_on(succession); });
    }
    check_sum(values_, mark(), members_, origin_);
    ++done_;
    loop_.after(pause_after(done_), guard_.wrap([this] { add(); }));
  }

  void go_on(const Succession& succession) {
    Origins next;
    for (const int rank : succession.members) next.push_back(members_[static_cast<std::size_t>(rank)]);
    const std::uint32_t epoch = world_->options().epoch + 1;
    left_out_ = succession.world == nullptr;
    if (left_out_ && next.empty()) return;
    CHECK(records_.try_emplace({succession.lineage, epoch}, next).second);
    CHECK(left_out_ == (std::find(next.begin(), next.end(), origin_) == next.end()));
    if (left_out_) return;
    World& before = *world_;
    world_ = succession.world;
    CHECK(world_->options().epoch == epoch);
    CHECK(world_->options().size == static_cast<int>(next.size()));
    members_ = next;
    lineage_ = succession.lineage;
    done_ = 0;
    // A program may hold a group for long after its epoch.
    held_.push_back(&before);
    if (held_.size() > 2) {
      held_.front()->leave(held_.front()->group());
      held_.pop_front();
    }
    add();
  }

  EventLoop& loop_;
  const int origin_;
  Records records_;
  Epochs epochs_;
  World* world_ = nullptr;
  std::deque<World*> held_;
  Origins members_;
  std::uint64_t lineage_ = 0;
  std::vector<std::int32_t> values_;
  std::vector<Status> failures_;
  int done_ = 0, pending_ = 0;
  bool left_out_ = false;
  AliveGuard guard_;
};

/// All ranks of a group whose processes and links break.
class Crew {
 public:
  /// The process of `ended_early` ends once all have met, and the others' epochs begin when they have just learned that, those of the last
  /// native rank later than the rest.
  Crew(const GroupSetup& setup, OnSplit on_split, Duration heartbeat_timeout = Duration::seconds(2), std::optional<int> ended_early = {},
       Duration last_is_late = {})
      : group(elastic(setup, heartbeat_timeout)) {
    group.meet();
    if (ended_early) {
      end(*ended_early, StopKind::closes_links, {});
      const auto knows = [&](int rank) { return rank == *ended_early || !group.world(rank).failure().ok(); };
      for (int rank = 0; rank < group.size(); ++rank)
        for (int tries = 0; !knows(rank); ++tries) {
          REQUIRE(tries < 100'000);
          group.sim().run_for(Duration::microseconds(1));
        }
    }
    natives = group.size() - setup.world.guests;
    for (int rank = 0; rank < natives; ++rank) {
      EpochsOptions options;
      options.on_split = on_split;
      options.look_for_proof = [this, rank](int other, std::function<void(bool)> done) {
        // A machine without power does not refuse a connection.
        group.node(rank).loop().after(Duration::milliseconds(1), [this, other, done = std::move(done)] { done(has_refused(other)); });
      };
      if (rank == natives - 1) group.sim().run_for(last_is_late);
      survivors.emplace_back(group, rank, std::move(options));
    }
    for (int rank = natives; rank < group.size(); ++rank) visitors.emplace_back(group, rank);
  }

  static GroupSetup elastic(GroupSetup setup, Duration heartbeat_timeout = Duration::seconds(2)) {
    setup.world.elastic = true;
    setup.world.heartbeat_timeout = heartbeat_timeout;
    setup.world.limits = {2000, 4000};
    setup.world.segment_bytes = 1024;
    return setup;
  }

  bool has_refused(int rank) const { return ended.contains(rank); }
  void end(int rank, StopKind kind, Duration delay) {
    group.sim().stop(group.node(rank), kind).in(delay);
    gone.insert(rank);
    if (kind != StopKind::falls_silent) end_times[rank] = group.sim().now() + delay;
  }
  void run_for(Duration duration) {
    const Instant until = group.sim().now() + duration;
    while (group.sim().now() < until) {
      for (const auto& [rank, at] : end_times)
        if (group.sim().now() >= at) ended.insert(rank);
      group.sim().run_for(std::min(Duration::milliseconds(1), until - group.sim().now()));
    }
  }
  bool is_gone(int rank) const { return gone.contains(rank); }
  Survivor& survivor(int rank) { return survivors[static_cast<std::size_t>(rank)]; }
  /// The native ranks that are not gone.
  Origins living() const {
    Origins all;
    for (int rank = 0; rank < natives; ++rank)
      if (!is_gone(rank)) all.push_back(rank);
    return all;
  }
  /// Every one of them is in one world of just these ranks, and that world works.
  void check_goes_on(const Origins& members) {
    check_records();
    for (const int rank : members) {
      CAPTURE(rank);
      CHECK(survivor(rank).members() == members);
      CHECK(survivor(rank).world().failure().ok());
      CHECK(survivor(rank).done() > 0);
      for (const Status& failure : survivor(rank).failures()) CHECK(failure.code() == Errc::peer_lost);
    }
  }

  /// What only ranks knew that are gone binds nobody.
  void check_records() {
    Records all;
    for (const int rank : living())
      for (const auto& [epoch, members] : survivor(rank).records()) CHECK(all.try_emplace(epoch, members).first->second == members);
  }

  SimGroup group;
  int natives = 0;
  std::deque<Survivor> survivors;
  std::deque<Visitor> visitors;
  std::set<int> gone, ended;
  std::map<int, Instant> end_times;
};

inline StopKind ending(SimRandom& random) { return random.below(2) == 0 ? StopKind::closes_links : StopKind::resets_links; }

}  // namespace ringlet::test
