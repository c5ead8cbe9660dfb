#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/elastic/begin_growth.hpp"
#include "core/engine/procedure_run.hpp"
#include "core/engine/requests.hpp"
#include "tests/core/sim_trainer.hpp"

// How a simulated trainer takes in others, and how it joins.
namespace ringlet::test {

namespace {

constexpr Duration kSwitchInterval = Duration::milliseconds(10), kPatienceWithOthers = Duration::seconds(15);
constexpr int kLargestSize = 1024;

}  // namespace

/// The world that it has left for the next one, but whose ranks may need it still.
struct SimTrainer::Before {
  Before(std::unique_ptr<Epochs> its, World& newest, std::unique_ptr<native::Votes> its_votes)
      : epochs(std::move(its)), last(&newest), votes(std::move(its_votes)) {}
  std::unique_ptr<Epochs> epochs;
  World* last;  // the newest one that follows it
  std::unique_ptr<native::Votes> votes;
  WorldSwitch switching{true};
  WorldSwitch::Entry entry = WorldSwitch::Entry::awaited;
  Status status{};
  bool is_helping = false;
  native::Votes::Told own{};
  std::vector<native::Votes::Told> told{};
};

SimTrainer::SimTrainer(SimTown& town, int process, BrokenTrainer broken, bool is_guest)
    : town_(town),
      loop_(town.node(process).loop()),
      process_(process),
      broken_(broken),
      door_(is_guest ? nullptr : std::make_unique<SimDoor>(town, process)) {
  if (!is_guest) return;
  lacks_ = waits_ = true;
  // What it has is not nothing.
  state_.fill(0.25F);
}

SimTrainer::~SimTrainer() = default;

void SimTrainer::grow() {
  if (is_guest()) return begin_step();
  switch (step_of(least_)) {
    case GrowthStep::none:
      return begin_step();
    case GrowthStep::begin:
      return begin_growth();
    case GrowthStep::enter:
      return is(BrokenTrainer::switches_without_agree) ? switch_over() : agree_to_switch();
    case GrowthStep::give_up:
      drop_growth();
      return begin_step();
  }
}

void SimTrainer::begin_growth() {
  drop_growth();
  if (world_->options().guests > 0 && !is(BrokenTrainer::keeps_guests)) {
    world_->fail({Errc::cancelled, "rank " + std::to_string(rank()) + " has ended the epoch, so that others can join", rank()});
    return on_failure(world_->failure());
  }
  one_has_gone_ = false;
  const Knocks::Chosen chosen =
      door_->knocks().choose(static_cast<std::size_t>(most_to_choose(world_->options().size, kLargestSize)), [this](const std::string&) {
        one_has_gone_ = true;
        if (growth_) growth_->stop({Errc::peer_lost, "the process that was to join has gone"});
      });
  const std::string host = town_.node(own_members().front()).host();
  BeginGrowth::Calls calls;
  calls.listen = [this, host](const GrowthPlan& plan) {
    form(plan, {host, 0});
    return growth_->port();
  };
  calls.meet = [this, host](const GrowthPlan& plan, std::uint16_t port) { form(plan, {host, port}); };
  calls.send_tickets = [this, host](const GrowthPlan& plan, std::uint16_t port) {
    door_->knocks().send_tickets(ticket_to(growth_->first().options(), plan, {host, port}, epochs_->lineage(), Duration::seconds(10)));
  };
  GroupEngine& group = world_->group();
  ++pending_;
  run_procedure(
      loop_,
      std::make_shared<BeginGrowth>(group.options(), kLargestSize,
                                    GrowthShare{static_cast<std::int32_t>(chosen.processes), static_cast<std::int32_t>(chosen.guests)},
                                    std::move(calls)),
      {&group}, 0, [this](const Status& status) { on_growth_begun(status); }, Duration::seconds(100));
}

/// The members' part.
void SimTrainer::form(const GrowthPlan& plan, const Address& coordinator) {
  WorldOptions present = sim_training_options();
  present.rank = rank();
  present.size = world_->options().size;
  present.epoch = world_->options().epoch;
  growth_ = std::make_unique<SimGrowth>(town_, process_, options_of_next(present, plan), coordinator, epochs_->lineage(), nullptr);
}

void SimTrainer::on_growth_begun(const Status& status) {
  --pending_;
  if (!status.ok()) return on_failure(status);
  if (one_has_gone_ && growth_) growth_->stop({Errc::peer_lost, "the process that was to join has gone"});
  loop_.after(pause(), guard_.wrap([this] { begin_step(); }));
}

void SimTrainer::drop_growth() {
  growth_.reset();
  door_->knocks().let_go();
}

void SimTrainer::agree_to_switch() {
  const bool is_ready = growth_ && (growth_->state() == GrowthState::ready ||
                                    (is(BrokenTrainer::switches_when_forming) && growth_->state() == GrowthState::forming));
  votes_->call(is_ready);
  voting_ = Vote::on_switch;
  answer_ = {is_ready ? 1 : 0, 0};
  const TensorView all{answer_.data(), DType::i32, 1};
  start(make_all_reduce(ReduceOp::min, all, all, 1, world_->group().options()), &SimTrainer::on_switch_agreed);
}

void SimTrainer::on_switch_agreed() {
  votes_->set_result(answer_[0] != 0);
  voting_ = Vote::none;
  if (votes_->answer()) return switch_over();
  drop_growth();
  begin_step();
}

/// All ranks that are left know that all have the next world, so all switch, whatever happens to it.
void SimTrainer::switch_over() {
  auto next = growth_ ? growth_->take() : nullptr;
  if (!next) {
    // A trainer that is wrong waits for what may never come.
    if (growth_) loop_.after(kSwitchInterval, guard_.wrap([this] { switch_over(); }));
    return;
  }
  before_ = std::make_unique<Before>(std::move(epochs_), *world_, std::move(votes_));
  // Where a rank was lost in agree(), the others have learnt the answer together with this one.
  if (before_->votes->epoch() == world_->options().epoch && world_->options().epoch > 0) before_->switching.helped();
  enter(std::move(next));
  start_entry([this](const Status& status) {
    before_->entry = status.ok() ? WorldSwitch::Entry::all_are_in : WorldSwitch::Entry::has_failed;
    before_->status = status;
    cross();
  });
  cross();
}

void SimTrainer::enter(std::unique_ptr<Epochs> epochs) {
  epochs_ = std::move(epochs);
  world_ = &growth_->first();
  held_.clear();
  votes_ = std::make_unique<native::Votes>();
  epoch_ = {growth_->lineage(), world_->options().epoch, growth_->chain()};
  members_of_[epoch_] = growth_->members();
  check_doors();
}

void SimTrainer::start_entry(std::function<void(const Status&)> on_over) {
  CollectiveTask task = make_barrier(world_->group().options());
  task.timeout = Duration::seconds(100);
  task.completion = [this, on_over = std::move(on_over)](const Status& status) {
    --pending_;
    loop_.defer(guard_.wrap([on_over, status] { on_over(status); }));
  };
  ++pending_;
  world_->group().start(0, std::move(task));
}

void SimTrainer::cross() {
  while (before_ && !before_->is_helping) {
    switch (before_->switching.next(before_->entry, !before_->last->failure().ok())) {
      case WorldSwitch::Step::wait:
        loop_.after(kSwitchInterval, guard_.wrap([this] { cross(); }));
        return;
      case WorldSwitch::Step::help:
        help();
        break;
      case WorldSwitch::Step::end_before:
        before_->last->fail({Errc::cancelled, "rank " + std::to_string(process_) + " has ended the epoch", before_->last->options().rank});
        break;
      case WorldSwitch::Step::leave: {
        const auto before = std::move(before_);
        if (is(BrokenTrainer::stays_in_world_before))
          kept_.push_back(std::move(before->epochs));
        else
          town_.leave(std::move(before->epochs));
        drop_growth();
        before->status.ok() ? settle_state() : on_failure(before->status);
        return;
      }
    }
  }
}

void SimTrainer::help() {
  Before& before = *before_;
  before.is_helping = true;
  const auto stop_helping = [this, &before] {
    if (before_.get() != &before || !before.is_helping) return;
    before.is_helping = false;
    before.switching.cannot_help();
    cross();
  };
  loop_.after(kPatienceWithOthers, guard_.wrap(stop_helping));
  before.epochs->when_succeeded(*before.last, guard_.wrap([this, &before, stop_helping](const Succession& succession) {
    if (before_.get() != &before || !before.is_helping) return;
    if (succession.world == nullptr) return stop_helping();
    before.last = succession.world;
    settle_before();
  }));
}

void SimTrainer::settle_before() {
  Before& before = *before_;
  const auto is_over = [this, &before] {
    before.is_helping = false;
    before.switching.helped();
    cross();
  };
  if (before.votes->epoch() == before.last->options().epoch) return is_over();
  before.own = before.votes->tell();
  before.told.assign(static_cast<std::size_t>(before.last->options().size), {});
  const TensorView all{before.told.data(), DType::i64, before.told.size() * before.own.size()};
  auto task = make_all_gather({before.own.data(), DType::i64, before.own.size()}, all, before.last->group().options());
  task.value().timeout = Duration::seconds(100);
  task.value().completion = guard_.wrap([this, &before, is_over](const Status& status) {
    if (before_.get() != &before || !before.is_helping) return;
    if (!status.ok()) return help();
    before.votes->settle(before.told, before.last->options().epoch);
    is_over();
  });
  before.last->group().start(0, std::move(task).value());
}

// --- a process that joins ---

void SimTrainer::join() {
  lacks_ = true;
  // What it has is not nothing.
  state_.fill(0.5F);
  for (int i = 1; i < town_.processes; ++i) doors_.push_back(town_.door((process_ + i) % town_.processes));
  knock();
}

/// Waits for what comes after this world.
void SimTrainer::follow() {
  waits_ = true;
  epochs_->when_succeeded(*world_, guard_.wrap([this, followed = world_](const Succession& succession) {
    if (world_ == followed) go_on(succession);
  }));
  if (!is_entering_) return;
  loop_.after(kPatienceWithOthers, guard_.wrap([this, followed = world_] {
    if (is_entering_ && world_ == followed) knock_again();
  }));
}

void SimTrainer::knock() {
  KnockingOptions options;
  options.doors = doors_;
  options.name = "process " + std::to_string(process_);
  knocking_ = std::make_unique<Knocking>(loop_, town_.node(process_).network(), town_.authenticator(process_), std::move(options),
                                         guard_.wrap([this](Result<wire::Ticket> ticket) {
                                           if (!ticket.ok()) return knock_again();
                                           ticket_ = std::move(ticket).value();
                                           use_ticket_now();
                                         }));
}

void SimTrainer::use_ticket_now() {
  WorldOptions options = sim_training_options();
  const Status usable = use_ticket(*ticket_, kLargestSize, options);
  if (!usable.ok()) wrong_ = "a ticket cannot be used: " + usable.text();
  growth_ = std::make_unique<SimGrowth>(town_, process_, options, Address{ticket_->host, static_cast<std::uint16_t>(ticket_->port)},
                                        ticket_->lineage, [this] { loop_.defer(guard_.wrap([this] { on_newcomer_met(); })); });
}

void SimTrainer::on_newcomer_met() {
  auto next = growth_->take();
  if (!next) return is(BrokenTrainer::uses_ticket_again) ? use_ticket_now() : knock_again();
  enter(std::move(next));
  is_entering_ = true;
  met_as_.resize(own_members().size());
  std::iota(met_as_.begin(), met_as_.end(), 0);
  start_entry([this](const Status& status) {
    if (status.ok()) return be_in();
    if (is(BrokenTrainer::leaves_where_one_is_lost)) return knock_again();
    follow();
  });
}

void SimTrainer::be_in() {
  is_entering_ = false;
  growth_.reset();
  knocking_.reset();
  door_->knocks().open();
  waits_ = false;
  settle_state();
}

void SimTrainer::knock_again() {
  // Knocking may be the caller.
  waits_ = true;
  is_entering_ = false;
  loop_.defer(guard_.wrap([this] {
    knocking_.reset();
    drop_growth();
    if (epochs_) town_.leave(std::move(epochs_));
    world_ = nullptr;
    votes_ = std::make_unique<native::Votes>();
    knock();
  }));
}

}  // namespace ringlet::test
