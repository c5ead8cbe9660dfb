#include "core/elastic/epochs.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "core/base/alive_guard.hpp"
#include "core/base/check.hpp"
#include "core/elastic/agreement.hpp"
#include "core/elastic/reunion.hpp"

namespace ringlet {

namespace {

// More than a rank keeps of answers about its state (World), so that a rank which only asks for those is not given up.
constexpr std::size_t kMaxUnreadByMember = 128;
constexpr std::size_t kKeptStages = 2;  // the newest, and the one before, whose ranks may still ask what was decided

}  // namespace

/// One epoch: its world, and the agreement at its end.
class Epochs::Stage final : public EpochUser {
 public:
  Stage(Epochs& epochs, std::unique_ptr<World> world, std::vector<int> origins, std::uint64_t lineage, Stage* before)
      : epochs_(epochs),
        before_(before),
        world_(std::move(world)),
        origins_(std::move(origins)),
        lineage_(lineage),
        proof_interval_(epochs.options_.first_proof_interval),
        agreement_(setup_of(*world_, lineage)) {
    world_->set_epoch_user(*this);
    // None of the guests goes on: their world ends with the epoch, and they join again.
    for (int rank = world_->options().natives(); rank < size(); ++rank) agreement_.lose(rank);
    // It may have failed before anybody was told.
    if (!world_->failure().ok()) loop().defer(guard_.wrap([this] { on_ended(world_->failure()); }));
  }
  ~Stage() { stop_timers(); }

  World& world() { return *world_; }
  std::uint64_t lineage() const { return lineage_; }
  bool unused() const { return world_->unused(); }
  bool has_forked() const { return succession_ && succession_->world && succession_->lineage != lineage_; }
  bool is_left_out() const { return succession_ && !succession_->world && !has_left(); }

  /// This world's ranks have gone on by themselves, and are to join others.
  void end_fork() {
    ends_fork_ = true;
    world_->fail(
        {Errc::peer_lost, "this part of the group had gone on by itself, and joins the others, which it can reach again", own_rank()});
    pump();
  }

  void forget_before() { before_ = nullptr; }
  void forget_after() { after_ = nullptr; }

  void when_succeeded(Done done) {
    if (succession_) return loop().defer([done = std::move(done), succession = *succession_] { done(succession); });
    waiters_.push_back(std::move(done));
  }

  void stop() {
    guard_.end();
    stop_timers();
  }

  void on_ended(const Status&) override {
    if (std::exchange(started_, true)) return;
    ended_at_ = loop().now();
    if (world_->options().has_just_joined(world_->misfit())) world_->give_up(world_->misfit());
    for (int rank = 0; rank < size(); ++rank)
      if (rank != own_rank()) drop_if_gone(rank);
    agreement_.start();
    arm_take_over();
    if (options().on_split == OnSplit::fork) arm_lonely(options().lonely);
    look_for_proof();
    pump();
  }

  void on_lost(int rank) override {
    drop_if_gone(rank);
    if (!started_ || succession_) return;
    look_for_proof();
    pump();
  }

  void on_message(int rank, const wire::ControlMessage& message) override {
    if (const auto one = of_agreement(message)) return receive(rank, *one);
    const auto* unheard = std::get_if<wire::Unheard>(&message);
    if (unheard == nullptr || unheard->epoch != world_->options().epoch) return;
    lost_by_.insert(rank);
    pump();
  }

 private:
  static Agreement::Setup setup_of(const World& world, std::uint64_t lineage) {
    const WorldOptions& own = world.options();
    Agreement::Setup setup;
    setup.size = own.size;
    setup.self = own.rank;
    setup.epoch = own.epoch;
    setup.lineage = lineage;
    for (int rank = 0; rank < own.size; ++rank) setup.votes.push_back(!own.is_guest(rank));
    return setup;
  }

  EventLoop& loop() const { return epochs_.loop_; }
  const EpochsOptions& options() const { return epochs_.options_; }
  int size() const { return world_->options().size; }
  int own_rank() const { return world_->options().rank; }

  void drop_if_gone(int rank) {
    if (world_->has_left_world(rank)) return agreement_.prove_dead(rank);
    if (world_->is_linked(rank) || !agreement_.hears(rank)) return;
    agreement_.lose(rank);
    lost_.insert(rank);
    if (world_->reaches(rank)) world_->send_control(rank, wire::Unheard{world_->options().epoch});
  }

  void receive(int rank, const AgreementMessage& message) {
    const std::uint32_t epoch = epoch_of(message);
    if (epoch < world_->options().epoch && before_ != nullptr)
      return before_->receive(before_->succession_->members[static_cast<std::size_t>(rank)], message);
    if (epoch != world_->options().epoch) return;
    if (const auto* decision = std::get_if<wire::Decision>(&message)) on_decision(rank, *decision);
    agreement_.receive(rank, message);
    pump();
  }

  /// Whatever the rank sends behind it is of the next epoch.
  void on_decision(int rank, const wire::Decision& decision) {
    // One that was silent, or did not hear this rank, went on without it.
    const bool left_out = !std::count(decision.members.begin(), decision.members.end(), static_cast<std::uint32_t>(own_rank()));
    const bool in_epoch =
        std::all_of(decision.members.begin(), decision.members.end(), [this](auto member) { return member < origins_.size(); });
    if (left_out && in_epoch && !decision.members.empty()) {
      if (succession_) {
        if (yields_to(decision)) epochs_.stages_.back()->end_fork();
        return;
      }
      if (decision.lineage != lineage_ && !world_->failure().ok()) return leave();
      if (decision.lineage == lineage_ && !agreement_.hears(rank)) return succeed({decision.members, decision.lineage});
    }
    has_begun_.insert(rank);
    if (after_ == nullptr) return;
    const auto& members = succession_->members;
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found != members.end()) after_->world().hear(static_cast<int>(found - members.begin()));
  }

  void send(int rank, const wire::ControlMessage& message) {
    if (after_ != nullptr) {
      const auto& members = succession_->members;
      const auto found = std::find(members.begin(), members.end(), rank);
      if (found != members.end()) return after_->send(static_cast<int>(found - members.begin()), message);
    }
    if (!world_->is_linked(rank)) return;
    if (world_->unread_by(rank) < kMaxUnreadByMember) return world_->send_control(rank, message);
    world_->on_violation(rank, "rank " + std::to_string(rank) + " asks on about the next epoch, and has left " +
                                   std::to_string(kMaxUnreadByMember) + " messages unread");
  }

  void pump() {
    if (has_left()) return;
    if (is_to_leave()) return leave();
    for (const Agreement::Send& one : agreement_.take_sends())
      send(one.to, std::visit([](const auto& message) { return wire::ControlMessage(message); }, one.message));
    if (agreement_.outcome() && !succession_) return succeed(*agreement_.outcome());
    if (agreement_.leads() && report_timer_ == 0)
      arm(report_timer_, options().report_timeout, [this] { agreement_.stop_waiting_for_reports(); });
  }

  bool is_to_leave() const {
    if (!started_ || succession_) return false;
    if (ends_fork_) return true;
    std::vector<OtherRank> others;
    for (int rank = 0; rank < world_->options().natives(); ++rank) {
      const bool has_left = world_->has_left_world(rank);
      if (rank != own_rank() && (has_left || !agreement_.is_dead(rank)))
        others.push_back({rank, !lost_.contains(rank), lost_by_.contains(rank), has_left});
    }
    return makes_way(own_rank(), others);
  }

  /// Whether this rank's part, which has gone on by itself, is to join the part that has decided this.
  bool yields_to(const wire::Decision& decision) const {
    const Agreement::Outcome own{{succession_->members.begin(), succession_->members.end()}, succession_->lineage};
    return has_forked() && has_better_claim({decision.members, decision.lineage}, own, lineage_);
  }

  /// Its goodbye is a proof, with which the others may decide.
  void leave() {
    world_->say_goodbye();
    succeed({{}, lineage_});
  }
  bool has_left() const { return succession_ && succession_->members.empty(); }

  void succeed(const Agreement::Outcome& outcome) {
    stop_timers();
    Succession succession{nullptr, {outcome.members.begin(), outcome.members.end()}, outcome.lineage};
    if (started_) succession.took = loop().now() - ended_at_;
    const auto own = std::find(succession.members.begin(), succession.members.end(), own_rank());
    std::unique_ptr<World> next;
    if (own != succession.members.end()) next = make_world(succession.members, static_cast<int>(own - succession.members.begin()));
    succession.world = next.get();
    succession_ = succession;
    if (next) tell_left_out(outcome);
    world_->retire();
    if (next) {
      std::vector<int> origins;
      for (const int rank : succession.members) origins.push_back(origins_[static_cast<std::size_t>(rank)]);
      after_ = &epochs_.begin(std::move(next), std::move(origins), outcome.lineage, this);
      if (options().on_succession) options().on_succession(*world_, succession);
    }
    for (Done& done : std::exchange(waiters_, {})) loop().defer([done = std::move(done), succession] { done(succession); });
  }

  /// Those that were silent learn it when they wake.
  void tell_left_out(const Agreement::Outcome& outcome) {
    for (int rank = 0; rank < world_->options().natives(); ++rank)
      if (rank != own_rank() && !world_->is_linked(rank) && world_->reaches(rank))
        world_->send_control(rank, wire::Decision{world_->options().epoch, outcome.members, outcome.lineage});
  }

  std::unique_ptr<World> make_world(const std::vector<int>& members, int own_rank_there) {
    WorldOptions options = world_->options();
    options.rank = own_rank_there;
    options.size = static_cast<int>(members.size());
    options.guests = options.joined = 0;
    ++options.epoch;
    options.early_limits = {};
    options.machines.clear();
    options.speeds.clear();
    for (const int before : members) {
      if (!world_->options().machines.empty()) options.machines.push_back(world_->options().machines[static_cast<std::size_t>(before)]);
      options.speeds.push_back(world_->options().topology.speed(before));
    }
    auto next = std::make_unique<World>(loop(), options);
    // Not all may have seen the last change, so the epoch begins without it.
    const std::vector<std::uint32_t> speeds = world_->parts().to_inherit();
    std::vector<std::uint32_t> inherited;
    for (const int before : members) inherited.push_back(speeds[static_cast<std::size_t>(before)]);
    next->parts().inherit(std::move(inherited));
    for (int rank = 0; rank < options.size; ++rank) {
      const int before = members[static_cast<std::size_t>(rank)];
      if (!world_->rank_name(before).empty()) next->set_rank_name(rank, world_->rank_name(before));
      next->set_door(rank, world_->door(before));
      if (rank == own_rank_there) continue;
      const bool linked = world_->is_linked(before);
      const LinkReport link = world_->link_with(before);
      next->adopt(world_->hand_over(before), rank);
      next->set_path(rank, link.path, link.dialled);
      if (has_begun_.contains(before)) next->hear(rank);
      if (!linked && !next->has_left_world(rank))
        next->fail({Errc::peer_lost, "lost rank " + std::to_string(rank) + " while the ranks agreed on who goes on", rank});
    }
    if (epochs_.options_.prepare) epochs_.options_.prepare(*next);
    return next;
  }

  /// Also where the others have gone on without this rank, whose own agreement then has no outcome.
  bool is_over() const { return succession_ || agreement_.outcome(); }

  // --- proofs ---

  void look_for_proof() {
    if (!options().look_for_proof || is_over()) return;
    for (const int rank : agreement_.unproved()) {
      if (!looked_for_.insert(rank).second) continue;
      options().look_for_proof(origins_[static_cast<std::size_t>(rank)],
                               guard_.wrap([this, rank](bool has_ended) { on_proof(rank, has_ended); }));
    }
  }

  void on_proof(int rank, bool has_ended) {
    if (has_ended) {
      agreement_.prove_dead(rank);
      return pump();
    }
    looked_for_.erase(rank);
    arm(proof_timer_, proof_interval_, [this] { look_for_proof(); });
    proof_interval_ = std::min(proof_interval_ * 2, options().last_proof_interval);
  }

  // --- time ---

  void arm(TimerId& timer, Duration delay, std::function<void()> task) {
    if (is_over()) return;
    if (timer != 0) loop().cancel(timer);
    timer = loop().after(delay, [this, &timer, task = std::move(task)] {
      timer = 0;
      task();
      pump();
    });
  }

  void arm_take_over() {
    arm(take_over_timer_, options().take_over_after + options().take_over_step * own_rank(), [this] {
      agreement_.take_over();
      arm_take_over();
    });
  }

  void arm_lonely(Duration delay) {
    arm(lonely_timer_, delay, [this] {
      agreement_.stand_alone();
      arm_lonely(options().report_timeout);
    });
  }

  void stop_timers() {
    for (TimerId* timer : {&report_timer_, &take_over_timer_, &lonely_timer_, &proof_timer_})
      if (*timer != 0) loop().cancel(std::exchange(*timer, 0));
  }

  Epochs& epochs_;
  Stage* before_;
  Stage* after_ = nullptr;
  std::unique_ptr<World> world_;
  const std::vector<int> origins_;  // by rank: the rank in the first epoch
  const std::uint64_t lineage_;
  Duration proof_interval_;
  Agreement agreement_;
  bool started_ = false, ends_fork_ = false;
  Instant ended_at_{};
  std::optional<Succession> succession_;
  std::vector<Done> waiters_;
  std::set<int> looked_for_;
  std::set<int> has_begun_;       // ranks whose Decision has come
  std::set<int> lost_, lost_by_;  // whom this rank has lost, and who has lost it
  TimerId report_timer_ = 0, take_over_timer_ = 0, lonely_timer_ = 0, proof_timer_ = 0;
  AliveGuard guard_;
};

Epochs::Epochs(EventLoop& loop, std::unique_ptr<World> first, EpochsOptions options) : loop_(loop), options_(std::move(options)) {
  RINGLET_CHECK(first->options().elastic);
  std::vector<int> origins(static_cast<std::size_t>(first->options().size));
  std::iota(origins.begin(), origins.end(), 0);
  begin(std::move(first), std::move(origins), options_.lineage, nullptr);
}

Epochs::~Epochs() = default;

World& Epochs::world() { return stages_.back()->world(); }
std::uint64_t Epochs::lineage() const { return stages_.back()->lineage(); }

Epochs::Stage& Epochs::begin(std::unique_ptr<World> world, std::vector<int> origins, std::uint64_t lineage, Stage* before) {
  stages_.push_back(std::make_unique<Stage>(*this, std::move(world), std::move(origins), lineage, before));
  // Not now, since the stage that has just ended is still at work.
  loop_.defer(guard_.wrap([this] { forget_old(); }));
  return *stages_.back();
}

void Epochs::forget_old() {
  if (stages_.size() <= kKeptStages) return;
  const auto end = stages_.end() - static_cast<std::ptrdiff_t>(kKeptStages);
  (*end)->forget_before();
  const Stage* last_fork = nullptr;
  std::for_each(stages_.begin(), end, [&](const auto& stage) {
    stage->forget_before();
    stage->forget_after();
    if (stage->has_forked()) last_fork = stage.get();
  });
  // Those from whom this part has gone on by itself may be heard again.
  stages_.erase(std::remove_if(stages_.begin(), end, [&](const auto& stage) { return stage->unused() && stage.get() != last_fork; }), end);
}

Epochs::Stage& Epochs::stage_of(const World& world) {
  const auto found = std::find_if(stages_.begin(), stages_.end(), [&](const auto& stage) { return &stage->world() == &world; });
  RINGLET_CHECK(found != stages_.end());
  return **found;
}

void Epochs::when_succeeded(const World& world, Done done) { stage_of(world).when_succeeded(std::move(done)); }

void Epochs::close(std::function<void()> on_closed) {
  if (stages_.back()->is_left_out()) world().hang_up();
  for (const auto& stage : stages_) stage->stop();
  world().close(std::move(on_closed));
}

int count_returning_guests(const World& failed) {
  const WorldOptions& options = failed.options();
  const Status& why = failed.failure();
  // One that has revoked the epoch comes again, too.
  const bool one_is_lost = why.code() != Errc::cancelled && why.rank() < options.size && options.is_guest(why.rank());
  return options.guests - (one_is_lost ? 1 : 0);
}

}  // namespace ringlet
