#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/elastic/hand_over.hpp"
#include "core/engine/requests.hpp"
#include "core/rendezvous/guest_entry.hpp"
#include "native/votes.hpp"
#include "tests/core/sim_broken.hpp"
#include "tests/core/sim_growth.hpp"
#include "tests/core/sim_rows.hpp"
#include "tests/core/sim_state.hpp"

namespace ringlet::test {

/// A world that a trainer may be in. Worlds that are formed by growth begin epochs of their own, which are told apart by their
/// coordinators.
struct SimEpoch {
  std::uint64_t lineage = 0;
  std::uint32_t number = 0;
  std::string chain{};
  friend bool operator==(const SimEpoch&, const SimEpoch&) = default;
  friend bool operator<(const SimEpoch& one, const SimEpoch& other) {
    return std::tie(one.lineage, one.number, one.chain) < std::tie(other.lineage, other.number, other.chain);
  }
};

EpochsOptions spoil(EpochsOptions options, BrokenTrainer broken);

/// A process that trains in simulated time as ElasticTrainer does: it averages, votes, applies, goes on in the next epoch after a loss, and
/// takes in processes that knock, or is one.
class SimTrainer {
 public:
  struct Applied {
    std::uint64_t step = 0;
    std::int64_t sum = 0;  // over the batch
    std::int64_t samples = 0;
    SimAverage average{};
    SimState before{}, after{};
  };
  struct Taken {
    std::uint64_t step = 0;
    SimState state{};
  };

  /// A step of a training whose state is sharded: what this process held after it.
  struct RowsAfter {
    SimEpoch epoch{};  // of its average
    std::uint64_t step = 0;
    SimAverage average{};
    SimRows::Copies copies{};
  };

  SimTrainer(SimTown& town, int process, BrokenTrainer broken, bool is_guest = false);
  ~SimTrainer();
  /// One of the ranks with which the training begins.
  void begin(std::unique_ptr<World> world);
  /// Knocks at all doors until it is in. `rejoins` says whether it knocks at those that it knows where the others went on without it.
  void join();
  void set_rejoins() { rejoins_ = true; }
  /// A guest does the same, and comes again whenever its world has ended.
  void come();

  /// All that it has ever applied, and the states that others have given it.
  const std::vector<Applied>& log() const { return log_; }
  const std::vector<Taken>& taken() const { return taken_; }
  const std::vector<RowsAfter>& rows_log() const { return rows_log_; }
  /// Null where the state is whole, or before it knows of rows.
  const SimRows* rows() const { return rows_.get(); }
  /// The epochs at whose beginning it went back, since rows were lost with all their holders, and the number of steps before that.
  const std::map<SimEpoch, std::uint64_t>& rollbacks() const { return rollbacks_; }
  /// Whether it has ended since rows were lost and no checkpoint was there.
  bool has_lost_rows() const { return has_lost_rows_; }
  /// The processes that are in each epoch, by rank, and the number of steps with which it began.
  const std::map<SimEpoch, std::vector<int>>& members() const { return members_of_; }
  const std::map<SimEpoch, std::uint64_t>& begins() const { return begins_; }
  const SimEpoch& epoch() const { return epoch_; }
  std::uint64_t step() const { return step_; }
  /// Whether it has committed so many steps in its newest epoch.
  bool goes_on(std::uint64_t steps) const;
  /// The epoch of which it has learned that the others have begun it without it, and its steps then.
  struct LeftOut {
    SimEpoch of;
    std::uint64_t step = 0;
  };
  const std::optional<LeftOut>& left_out() const { return left_out_; }
  /// All who had the training's state are lost.
  bool has_no_state() const { return has_no_state_; }
  /// What it has seen that must not be, or "".
  std::string wrong() const;
  /// Ends the epoch for all ranks, which go on in the next one.
  void revoke();
  /// Forgets what only tests ask for. wrong() has no answer afterwards.
  void forget_history();

 private:
  struct Before;
  enum class Vote : std::uint8_t { none, on_step, on_switch, on_rows };

  // Training.
  void begin_step();
  void compute_gradient();
  Result<CollectiveTask> averaging();
  void vote();
  void on_voted();
  void commit();
  void begin_epoch();
  GrowthStanding growth_standing();
  void settle_state();
  void on_standings();
  void on_checksums();
  void take_block();
  void on_block();
  void on_state_checked();
  void have_state();
  // Sharded state.
  void tell_rows();
  void on_row_lengths();
  void on_rows_told();
  void on_fresh_rows();
  void on_rows_agreed();
  void on_first_rows();
  void have_rows();
  void lose_rows(const SimRows& before);
  void go_back();
  void on_rows_gathered();
  void on_averaged();
  void on_gradients_at_second();
  void commit_rows();
  int machine();
  // After a loss.
  void on_failure(const Status& status);
  void follow();
  void go_on(const Succession& succession);
  void settle_votes();
  void resume_after_loss();
  void be_left_out(const Succession& succession);
  // Growth.
  void grow();
  void begin_growth();
  void form(const GrowthPlan& plan, const Address& coordinator);
  void on_growth_begun(const Status& status);
  void drop_growth();
  void agree_to_switch();
  void on_switch_agreed();
  void switch_over();
  void enter(std::unique_ptr<Epochs> epochs);
  void start_entry(std::function<void(const Status&)> on_over);
  void cross();
  void help();
  void settle_before();
  // Of a process that joins.
  void knock();
  void use_ticket_now();
  void on_newcomer_met();
  void be_in();
  void knock_again();
  // Of a guest.
  void sit_down(GuestEntry::Entry& entry);
  void enter_as_guest(const SimTown::Met& met);
  void come_again();

  using Next = void (SimTrainer::*)();
  void start(Result<CollectiveTask> task, Next next);
  void start_transfers(std::optional<Result<CollectiveTask>> beside, Next next);
  template <class T>
  void gather(DType dtype, const T& own, std::vector<T>& all, void (SimTrainer::*next)());
  void take_buffer_back();
  Duration pause() const;
  bool boasts() const { return is_guest() && (is(BrokenTrainer::guests_boast) || is(BrokenTrainer::believes_guests)); }
  std::uint64_t told_step() const { return boasts() ? step_ + 1000 : step_; }
  bool is(BrokenTrainer broken) const { return broken_ == broken; }
  int rank() const { return world_->options().rank; }
  bool is_guest() const { return door_ == nullptr; }
  std::vector<int>& own_members() { return members_of_[epoch_]; }
  void check_doors();

  SimTown& town_;
  EventLoop& loop_;
  const int process_;
  const BrokenTrainer broken_;
  bool rejoins_ = false;
  const std::unique_ptr<SimDoor> door_;  // null: a guest
  std::vector<Address> doors_;           // at which it knocks
  std::unique_ptr<Epochs> epochs_;
  World* world_ = nullptr;
  std::deque<World*> held_;
  std::vector<std::unique_ptr<Epochs>> kept_;  // of a trainer that is wrong
  std::unique_ptr<native::Votes> votes_ = std::make_unique<native::Votes>();
  Vote voting_ = Vote::none;

  SimEpoch epoch_{};
  std::map<SimEpoch, std::vector<int>> members_of_;
  std::map<SimEpoch, std::uint64_t> begins_;
  std::uint64_t step_ = 0;
  SimState state_{};
  bool is_settled_ = false, lacks_ = false, has_no_state_ = false;
  std::vector<Applied> log_;
  std::vector<Taken> taken_;
  std::uint64_t next_step_ = 0;  // that may be applied
  std::vector<float> gradient_, sum_;
  std::deque<std::vector<float>> taken_back_;  // nothing may write there any more
  std::array<std::int32_t, 2> answer_{};
  GrowthStanding least_ = GrowthStanding::idle;
  std::vector<native::Votes::Told> told_;
  native::Votes::Told own_told_{};
  int share_rank_ = 0, share_size_ = 0, pending_ = 0;
  SimAverage average_{};
  int average_epoch_ = 0;
  bool waits_ = false;
  std::optional<LeftOut> left_out_;
  bool had_gone_on_alone_ = false;
  std::string wrong_;

  using ToldState = std::array<std::uint64_t, 3>;
  ToldState told_state_{};
  std::vector<ToldState> told_states_;
  HandOver hand_over_;
  std::size_t block_ = 0;
  std::vector<float> block_values_;
  std::int32_t is_right_ = 0;

  std::unique_ptr<SimRows> rows_;
  std::vector<RowTransfer> transfers_;
  std::string own_text_, told_texts_;
  std::int64_t own_length_ = 0, saved_ = -1;
  std::vector<std::int64_t> lengths_;
  std::vector<SimState> gathered_;
  SimEpoch average_of_{};
  std::vector<RowsAfter> rows_log_;
  std::map<SimEpoch, std::uint64_t> rollbacks_;
  bool has_lost_rows_ = false;

  std::unique_ptr<SimGrowth> growth_;
  bool one_has_gone_ = false;  // of those that were chosen
  std::unique_ptr<Before> before_;
  std::unique_ptr<Knocking> knocking_;
  std::optional<wire::Ticket> ticket_;
  std::unique_ptr<GuestEntry> entry_;
  std::unique_ptr<World> guest_world_;
  std::unique_ptr<Meeting> guest_meeting_;
  std::size_t tries_ = 0;
  bool comes_again_ = false;
  bool is_entering_ = false;  // a world in which it does not know yet that the members are
  std::vector<int> met_as_;   // by rank: the rank in that world
  AliveGuard guard_;
};

template <class T>
void SimTrainer::gather(DType dtype, const T& own, std::vector<T>& all, void (SimTrainer::*next)()) {
  const std::size_t count = sizeof(T) / size_of(dtype);
  all.assign(static_cast<std::size_t>(world_->options().size), {});
  start(make_all_gather({&own, dtype, count}, {all.data(), dtype, all.size() * count}, world_->group().options()), next);
}

}  // namespace ringlet::test
