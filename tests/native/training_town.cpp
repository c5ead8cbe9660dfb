#include "tests/native/training_town.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <ringlet/ringlet.hpp>
#include <utility>
#include <vector>

namespace ringlet::test {

namespace {

constexpr std::uint64_t kBatch = 22;  // divides evenly by two ranks alone
constexpr int kRankBits = 8;

/// A state whose every bit depends on all gradients of all steps.
struct Model {
  explicit Model(const TownTraining& training) : large(training.elements, 0.5f), large_gradient(training.elements) {}
  /// They depend on the parameters, as real ones do, and each addition rounds.
  void compute_gradients(const Step& step, std::uint64_t number) {
    for (std::vector<float>* gradient : {&small_gradient, &large_gradient}) {
      const std::vector<float>& parameters = gradient == &small_gradient ? small : large;
      for (std::size_t i = 0; i < gradient->size(); ++i) (*gradient)[i] = 0.01f * parameters[i];
      for (std::uint64_t sample = step.first(); sample < step.first() + step.count(); ++sample) {
        const auto spread = static_cast<float>((number * 977 + sample * 131) % 1009) / 7;
        for (std::size_t i = sample % 16; i < gradient->size(); i += 16) (*gradient)[i] += spread / static_cast<float>(step.count());
      }
    }
  }
  void apply() {
    for (std::size_t i = 0; i < small.size(); ++i) small[i] -= 0.1f * small_gradient[i];
    for (std::size_t i = 0; i < large.size(); ++i) large[i] -= 0.1f * large_gradient[i];
  }
  /// FNV-1a over 64 bits at a time, without the bits that a Journal has for the ranks.
  std::uint64_t hash() const {
    std::uint64_t hash = 14'695'981'039'346'656'037U;
    for (const std::vector<float>* parameters : {&small, &large})
      for (std::size_t i = 0; i + 1 < parameters->size(); i += 2) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, parameters->data() + i, sizeof bits);
        hash = (hash ^ bits) * 1'099'511'628'211U;
      }
    return hash >> kRankBits;
  }
  Checkpoint checkpoint() {
    Checkpoint state;
    state.add("model", Tree{{"small", small}, {"large", large}});
    return state;
  }

  Tree gradients(std::vector<float>& stop) { return {{"large", large_gradient}, {"small", small_gradient}, {"stop", stop}}; }

  std::vector<float> small = std::vector<float>(50, 1.0f), large;
  std::vector<float> small_gradient = std::vector<float>(50), large_gradient;
};

struct Stopped {};

ElasticTrainerOptions options_of(const TownTraining& training) {
  ElasticTrainerOptions options;
  options.average.all_reduce_size = training.bucket;
  return options;
}

}  // namespace

// --- what they have done ---

void Journal::commit(std::uint64_t number, const Committed& step) {
  const std::uint64_t record = step.hash << kRankBits | static_cast<std::uint64_t>(step.ranks);
  std::uint64_t before = 0;
  if (!steps_[number].compare_exchange_strong(before, record) && before != record) ++differences_;
  std::uint64_t size = size_;
  while (size <= number && !size_.compare_exchange_weak(size, number + 1)) {
  }
}

Committed Journal::at(std::uint64_t number) const {
  const std::uint64_t record = steps_[number];
  return {record >> kRankBits, static_cast<int>(record & ((1U << kRankBits) - 1))};
}

std::uint64_t Journal::gaps() const {
  std::uint64_t gaps = 0;
  for (std::uint64_t number = 0; number < size(); ++number) gaps += steps_[number] == 0 ? 1 : 0;
  return gaps;
}

std::uint64_t Journal::differences_from(const Journal& other) const {
  std::uint64_t differences = 0;
  for (std::uint64_t number = 0; number < other.size(); ++number)
    differences += other.steps_[number] != 0 && other.steps_[number] != steps_[number] ? 1 : 0;
  return differences;
}

void Journal::continue_by(const Journal& later) {
  for (std::uint64_t number = 0; number < later.size(); ++number)
    if (later.steps_[number] != 0) steps_[number] = later.steps_[number].load();
  size_ = later.size();
}

std::optional<std::uint64_t> first_difference(const Journal& journal, const TownTraining& training,
                                              const std::function<void(std::uint64_t)>& progress) {
  Model state(training);
  std::mutex mutex;
  std::optional<std::uint64_t> differs;
  for (std::uint64_t begin = 0; begin < journal.size();) {
    const int ranks = journal.at(begin).ranks;
    std::uint64_t end = begin;
    while (end < journal.size() && journal.at(end).ranks == ranks) ++end;
    const Model before = state;
    run_ranks(std::max(ranks, 1), [&](Group& group) {
      Model model = before;
      ElasticTrainer trainer(group, model.checkpoint(), options_of(training));
      std::vector<float> stop(1);
      trainer.run({.steps = end - begin, .batch = kBatch}, [&](Step& step) {
        const std::uint64_t number = begin + step.number();
        model.compute_gradients(step, number);
        step.average(model.gradients(stop));
        step.commit([&] { model.apply(); });
        const std::lock_guard lock(mutex);
        if (model.hash() != journal.at(number).hash && (!differs || number < *differs)) differs = number;
      });
      const std::lock_guard lock(mutex);
      state = model;
    });
    if (differs) return differs;
    begin = end;
    if (progress) progress(end);
  }
  return differs;
}

// --- the processes ---

TrainingTown::TrainingTown(const TownTraining& training, const RankProcesses& processes) : training_(training), processes_(processes) {
  const LoopbackSocket coordinator = open_loopback_socket();
  for (; started_ < processes_.ranks; ++started_)
    here_.emplace(started_, start_rank(started_, coordinator, processes_, [this](Group group) { work(std::move(group), started_, true); }));
  ::close(coordinator.descriptor);
}

TrainingTown::~TrainingTown() {
  here_.merge(absent_);
  for (const auto& [number, pid] : here_) {
    ::kill(pid, SIGKILL);
    (void)exit_code_of(pid);
  }
}

/// Trains until it is told to stop, on all ranks after the same step.
void TrainingTown::work(Group group, int number, bool is_first) {
  Citizen& own = citizen(number);
  Model model(training_);
  std::vector<float> stop(1);
  ElasticTrainerOptions options = options_of(training_);
  options.on_state = [&](const Checkpoint&, std::uint64_t) {
    if (is_first) shared_->has_parted = true;
  };
  options.on_change = [&](const MembershipChange& change) {
    const bool names_it = change.lost.size() == 1 && change.cause.rank() == change.lost.front();
    if (!change.lost.empty()) own.blames = names_it ? change.lost.front() : -1;
  };
  ElasticTrainer trainer(std::move(group), model.checkpoint(), options);
  group = Group();
  try {
    trainer.run({.steps = Journal::kMostSteps, .batch = kBatch}, [&](Step& step) {
      model.compute_gradients(step, step.number());
      if (training_.computing.count() > 0) pass(training_.computing);
      stop[0] = shared_->stop ? 1 : 0;
      if (own.fatal_delay > 0) die_after(std::chrono::nanoseconds(own.fatal_delay));
      step.average(model.gradients(stop));
      step.commit([&] {
        model.apply();
        (own.writes_apart ? shared_->apart : shared_->journal).commit(step.number(), {model.hash(), step.world().size()});
        own.rank = step.world().rank();
        own.ranks = step.world().size();
        if (own.steps == 0) step.world().door().copy(own.door.data(), own.door.size() - 1);
        ++own.steps;
      });
      if (stop[0] > 0) throw Stopped();
    });
  } catch (const Stopped&) {
  }
}

int TrainingTown::grow() {
  int number = 0;
  while (here_.contains(number) || absent_.contains(number)) ++number;
  std::string doors;
  for (const auto& [other, pid] : here_) doors += (doors.empty() ? "" : ",") + std::string(citizen(other).door.data());
  Citizen& own = citizen(number);
  own.steps = 0;
  own.fatal_delay = 0;
  own.writes_apart = false;
  own.door.fill('\0');
  here_.emplace(number, start_newcomer(doors, processes_, [this, number](Group group) { work(std::move(group), number, false); }));
  ++started_;
  return number;
}

void TrainingTown::forget(int number) {
  exit_code_of(here_.at(number));
  last_lost_rank_ = citizen(number).rank;
  here_.erase(number);
}

void TrainingTown::kill(int number) {
  for (const auto& [other, pid] : here_) citizen(other).blames = -1;
  ::kill(here_.at(number), SIGKILL);
  forget(number);
}

void TrainingTown::kill_in_average(int number, std::chrono::nanoseconds delay) {
  for (const auto& [other, pid] : here_) citizen(other).blames = -1;
  citizen(number).fatal_delay = static_cast<int>(delay.count());
  forget(number);
}

void TrainingTown::stop(int number) {
  ::kill(here_.at(number), SIGSTOP);
  cut_off(number);
}

void TrainingTown::wake(int number) {
  come_back(number);
  ::kill(here_.at(number), SIGCONT);
}

int TrainingTown::any(SimRandom& random) const {
  return std::next(here_.begin(), static_cast<std::ptrdiff_t>(random.below(here_.size())))->first;
}

bool TrainingTown::has_lost_one() const {
  return std::any_of(here_.begin(), here_.end(), [](const auto& process) {
    siginfo_t info{};
    const bool has = ::waitid(P_PID, static_cast<::id_t>(process.second), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
    if (has) std::fprintf(stderr, "process %d has ended by itself\n", static_cast<int>(process.second));
    return has;
  });
}

bool TrainingTown::go_on() {
  std::map<int, std::uint64_t> before;
  for (const auto& [number, pid] : here_) before[number] = citizen(number).steps;
  bool lost_one = false;
  const bool all = wait_until([&] {
    lost_one = has_lost_one();
    return lost_one || std::all_of(here_.begin(), here_.end(), [&](const auto& process) {
             const Citizen& one = citizen(process.first);
             return one.steps > before[process.first] && one.ranks == static_cast<int>(here_.size());
           });
  });
  return all && !lost_one;
}

bool TrainingTown::all_blame_the_last() {
  return std::all_of(here_.begin(), here_.end(), [&](const auto& process) { return citizen(process.first).blames == last_lost_rank_; });
}

bool TrainingTown::end_well() {
  shared_->stop = true;
  const bool well = std::all_of(here_.begin(), here_.end(), [](const auto& process) { return exit_code_of(process.second) == 0; });
  here_.clear();
  return well;
}

}  // namespace ringlet::test
