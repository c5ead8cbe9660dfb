#include <algorithm>
#include <set>
#include <utility>

#include "tests/core/sim_training.hpp"

// What must hold for the rows of a training whose state is sharded. Nothing here asks RowSpread where a row is to be.
namespace ringlet::test {

namespace {

/// Each step of a group brings its second holders a row at least.
constexpr std::size_t kMostStepsOfRebuild = kSimRows;

bool is_same(const SimState& one, const SimState& other, std::size_t row) {
  return one[row] == other[row] && one[kSimRows + row] == other[kSimRows + row];
}

/// Whether all copies are those of this state.
bool are_of(const std::map<int, const SimRows::Copies*>& all, const SimState& state) {
  for (const auto& [process, copies] : all)
    for (const SimRows::Copy& copy : *copies)
      for (std::size_t row = 0; row < kSimRows; ++row)
        if (copy.has[row] && !is_same(copy.values, state, row)) return false;
  return true;
}

/// Whether all holders of each row have the same bits.
bool are_alike(const std::map<int, const SimRows::Copies*>& all) {
  for (std::size_t row = 0; row < kSimRows; ++row) {
    const SimState* first = nullptr;
    for (const auto& [process, copies] : all)
      for (const SimRows::Copy& copy : *copies) {
        if (copy.has[row] && first != nullptr && !is_same(copy.values, *first, row)) return false;
        if (copy.has[row]) first = &copy.values;
      }
  }
  return true;
}

}  // namespace

void SimTraining::on_rows_lost(int process, const SimRows& before) {
  const SimTrainer& one = trainer(process);
  // Those that have found it since hold nothing any more.
  if (!lost_rows_in_.insert(one.epoch()).second) return;
  const auto is_held = [&](std::size_t row) {
    return std::any_of(one.members().at(one.epoch()).begin(), one.members().at(one.epoch()).end(), [&](int member) {
      const SimRows* rows = member == process ? &before : trainer(member).rows();
      return rows != nullptr && rows->holds(row, one.rows()->step());
    });
  };
  for (std::size_t row = 0; row < kSimRows; ++row)
    if (!is_held(row)) return;
  wrong_ = "I13: rows are given up that ranks still hold";
}

SimTraining::StepsOfRows SimTraining::steps_of_rows() const {
  StepsOfRows steps;
  for (std::size_t process = 0; process < trainers_.size(); ++process) {
    if (!trainers_[process]) continue;
    for (const auto& one : trainers_[process]->rows_log()) {
      StepOfRows& step = steps[{one.step, one.epoch}];
      step.average = one.average;
      step.copies[static_cast<int>(process)] = &one.copies;
    }
  }
  return steps;
}

std::string SimTraining::check_rows() {
  const bool forks = setup_.on_split == OnSplit::fork;
  std::map<std::uint64_t, std::set<SimState>> before{{0, {SimState{}}}};  // more than one where training went back
  std::map<SimEpoch, std::size_t> steps_in;
  for (const auto& [key, step] : steps_of_rows()) {
    const auto& [number, epoch] = key;
    if (!are_alike(step.copies)) return "I13: the holders of a row have different bits";
    bool is_right = false;
    std::set<SimState>& after = before[number + 1];
    for (const SimState& state : before[number]) {
      const SimState next = reference_step(state, number, step.average);
      if (!are_of(step.copies, next)) continue;
      is_right = true;
      after.insert(next);
    }
    if (!is_right) return "I3: the rows after a step are not those of an undisturbed run";
    if (!forks && after.size() > 1 + lost_rows_in_.size()) return "I3: ranks have different states after one step";
    if (std::string wrong = check_holders(epoch, step, ++steps_in[epoch] > kMostStepsOfRebuild); !wrong.empty()) return wrong;
  }
  return {};
}

std::string SimTraining::check_holders(const SimEpoch& epoch, const StepOfRows& step, bool are_rebuilt) {
  // Others may have ended before they took it.
  if (static_cast<int>(step.copies.size()) < step.average.ranks) return {};
  std::map<int, int> on_machine;
  for (const auto& [process, copies] : step.copies) ++on_machine[process / setup_.ranks_per_machine];
  const bool apart =
      std::all_of(on_machine.begin(), on_machine.end(), [&](const auto& machine) { return 2 * machine.second <= step.average.ranks; });
  for (std::size_t row = 0; row < kSimRows; ++row) {
    std::vector<int> holders[2];
    for (const auto& [process, copies] : step.copies)
      for (std::size_t place = 0; place < copies->size(); ++place)
        if ((*copies)[place].has[row]) holders[place].push_back(process);
    const std::string which = " (row " + std::to_string(row) + " in epoch " + std::to_string(epoch.number) + ")";
    if (holders[0].size() != 1 || holders[1].size() > 1) return "I13: a row has not one holder in each place" + which;
    if (holders[1].empty() && step.average.ranks > 1 && are_rebuilt) return "I13: a row's second holder is not rebuilt" + which;
    if (holders[1].empty()) continue;
    if (holders[0] == holders[1]) return "I13: a row's second holder is its first one" + which;
    if (apart && holders[0].front() / setup_.ranks_per_machine == holders[1].front() / setup_.ranks_per_machine)
      return "I13: both holders of a row are on one machine" + which;
  }
  return {};
}

}  // namespace ringlet::test
