#include "tests/core/sim_training.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ringlet::test {

namespace {

constexpr std::uint64_t kMostEvents = 100'000;  // of ranks that come into one epoch after the other without end
constexpr Duration kDeafness = Duration::seconds(20);

GroupSetup with_options(GroupSetup setup) {
  setup.world = sim_training_options();
  return setup;
}

}  // namespace

SimTraining::SimTraining(const TrainingSetup& setup, BrokenTrainer broken)
    : setup_(setup), broken_(broken), group_(with_options(setup.group)), town_(group_.sim()) {
  group_.meet();
  town_.encrypts = setup.group.encrypts;
  town_.on_split = setup.on_split;
  town_.spoil = [broken](EpochsOptions options) { return spoil(std::move(options), broken); };
  town_.shards = setup.shards;
  town_.ranks_per_machine = setup.ranks_per_machine;
  town_.saves_every = setup.saves_every;
  town_.on_rows_lost = [this](int process, const SimRows& before) { on_rows_lost(process, before); };
  town_.processes = group_.size();
  for (int process = 0; process < group_.size(); ++process) {
    trainers_.push_back(std::make_unique<SimTrainer>(town_, process, broken));
    if (setup.rejoins) trainers_.back()->set_rejoins();
    trainers_.back()->begin(group_.take_world(process));
  }
  for (int joiner = 0; joiner < setup.joiners; ++joiner) sim().add_node();
}

void SimTraining::end_when(int process, StopKind kind, std::function<bool()> condition) {
  sim().stop(town_.node(process), kind).when([this, process, kind, condition = std::move(condition)] {
    if (!condition() || !trainers_[static_cast<std::size_t>(process)]) return false;
    ended_.insert(process);
    // A machine without power refuses nothing.
    if (kind != StopKind::falls_silent) town_.refusing.insert(process);
    return true;
  });
}

void SimTraining::join_when(std::function<bool()> condition, bool as_guest) {
  const int process = town_.processes++;
  trainers_.emplace_back();
  SimFault(sim(), [this, process, as_guest] {
    auto& trainer = trainers_[static_cast<std::size_t>(process)];
    trainer = std::make_unique<SimTrainer>(town_, process, broken_, as_guest);
    if (setup_.rejoins) trainer->set_rejoins();
    as_guest ? trainer->come() : trainer->join();
  }).when(std::move(condition));
}

void SimTraining::break_at(std::uint64_t first, const TrainingFault& fault) {
  using Kind = TrainingFault::Kind;
  const auto now = [this, at = first + fault.event] { return sim().event_count() >= at; };
  const bool is_of_nodes = fault.kind != Kind::network_parts && fault.kind != Kind::joins && fault.kind != Kind::guest_comes;
  SimNode &one = town_.node(is_of_nodes ? fault.rank : 0), &other = town_.node(fault.other);
  switch (fault.kind) {
    case Kind::process_ends:
      return end_when(fault.rank, StopKind::closes_links, now);
    case Kind::process_is_reset:
      return end_when(fault.rank, StopKind::resets_links, now);
    case Kind::power_fails:
      return end_when(fault.rank, StopKind::falls_silent, now);
    case Kind::stands_still:
      return sim().freeze(one).when(now);
    case Kind::link_is_cut:
      return sim().cut(one, other).when(now);
    case Kind::link_is_deaf:
      return sim().stall(one, other, kDeafness).when(now);
    case Kind::link_is_reset:
      return sim().reset(one, other).when(now);
    case Kind::is_restarted:
      end_when(fault.rank, StopKind::closes_links, now);
      return join_when([this, process = fault.rank] { return ended_.contains(process); });
    case Kind::joins:
      return join_when(now);
    case Kind::guest_comes:
      return join_when(now, true);
    case Kind::network_parts:
    case Kind::kCount:
      break;
  }
  for (int process = 0; process < town_.processes; ++process)
    for (int peer = 0; peer < process; ++peer)
      if ((fault.rank >> process & 1) != (fault.rank >> peer & 1)) sim().cut(town_.node(process), town_.node(peer)).when(now);
}

void SimTraining::heal() {
  for (int process = 0; process < town_.processes; ++process) {
    if (!ended_.contains(process)) sim().resume(town_.node(process)).now();
    for (int peer = 0; peer < process; ++peer) sim().mend(town_.node(process), town_.node(peer)).now();
  }
}

std::vector<int> SimTraining::living() const {
  std::vector<int> processes;
  for (int process = 0; process < static_cast<int>(trainers_.size()); ++process)
    if (trainers_[static_cast<std::size_t>(process)] && !ended_.contains(process)) processes.push_back(process);
  return processes;
}

std::vector<int> SimTraining::groups_that_go_on() {
  std::map<SimEpoch, std::vector<int>> going;
  for (const int process : living())
    if (trainer(process).goes_on(2)) going[trainer(process).epoch()].push_back(process);
  std::vector<int> sizes;
  for (const auto& [epoch, processes] : going) {
    std::vector<int> members = trainer(processes.front()).members().at(epoch);
    std::sort(members.begin(), members.end());
    if (members == processes) sizes.push_back(static_cast<int>(processes.size()));
  }
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes;
}

bool SimTraining::run_until_groups_go_on(const std::vector<int>& sizes, Duration limit) {
  return sim().run_until([&] { return groups_that_go_on() == sizes; }, {.events = kMostEvents, .time = limit}) == RunEnd::done;
}

void SimTraining::forget_history() {
  town_.forget_old();
  for (const int process : living()) trainer(process).forget_history();
}

std::string SimTraining::check() {
  if (!wrong_.empty()) return wrong_;
  if (std::string wrong = check_together(); !wrong.empty()) return wrong;
  for (const int process : living())
    for (const auto& taken : trainer(process).taken())
      if (!somebody_had(taken)) return "I11: a rank was given a state that nobody had";
  for (const int process : living())
    if (const std::string wrong = check_alone(process); !wrong.empty()) return wrong + " (process " + std::to_string(process) + ")";
  return setup_.shards ? check_rows() : check_states();
}

std::string SimTraining::check_alone(int process) {
  const SimTrainer& one = trainer(process);
  if (std::string wrong = one.wrong(); !wrong.empty()) return wrong;
  // What the others have when they go on without a rank is all that it has committed with them.
  const auto& left_out = one.left_out();
  for (const int other : living())
    if (const auto& begins = trainer(other).begins(); left_out && begins.contains(left_out->of))
      if (const auto& rollbacks = trainer(other).rollbacks();
          left_out->step > (rollbacks.contains(left_out->of) ? rollbacks : begins).at(left_out->of))
        return "I12: a rank went on after the others had gone on without it";
  return {};
}

std::string SimTraining::check_together() {
  const bool forks = setup_.on_split == OnSplit::fork;
  std::map<SimEpoch, std::vector<int>> members;
  std::map<SimEpoch, std::uint64_t> begins;
  std::map<std::uint32_t, std::uint64_t> lineages;
  std::map<std::uint32_t, std::string> chains;
  for (const int process : living()) {
    for (const auto& [epoch, its] : trainer(process).members()) {
      if (members.try_emplace(epoch, its).first->second != its) return "I1: ranks know different members of one epoch";
      if (!forks && lineages.try_emplace(epoch.number, epoch.lineage).first->second != epoch.lineage)
        return "I6: an epoch has two successors";
    }
    for (const auto& [epoch, its] : trainer(process).begins()) {
      if (begins.try_emplace(epoch, its).first->second != its) return "I2: a step was committed by some ranks and discarded by others";
      if (!forks && chains.try_emplace(epoch.number, epoch.chain).first->second != epoch.chain)
        return "I6: an epoch has two successors, one by a loss and one by growth";
    }
  }
  return {};
}

std::string SimTraining::check_states() {
  std::map<std::uint64_t, SimState> states;
  // Halves of a network that go on each by themselves have states of their own.
  if (setup_.on_split == OnSplit::fork) return {};
  for (const int process : living())
    for (const auto& one : trainer(process).log())
      if (states.try_emplace(one.step, one.after).first->second != one.after) return "I3: ranks have different states after one step";
  return {};
}

bool SimTraining::somebody_had(const SimTrainer::Taken& taken) const {
  if (taken.step == 0) return taken.state == SimState{};
  for (const auto& trainer : trainers_)
    if (trainer && std::any_of(trainer->log().begin(), trainer->log().end(),
                               [&](const auto& one) { return one.step + 1 == taken.step && one.after == taken.state; }))
      return true;
  return false;
}

}  // namespace ringlet::test
