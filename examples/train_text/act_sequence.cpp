#include "act_sequence.hpp"

#include <array>

namespace train_text {
namespace {

// The speeds are compared more often in the first steps, while nothing is known about them.
bool speeds_are_due(const Settings& settings, int steps_done) {
  if (settings.shares != Shares::measured || steps_done == settings.steps) return false;
  const bool power_of_two = (steps_done & (steps_done - 1)) == 0;
  return steps_done % settings.measure_every == 0 || (steps_done < settings.measure_every && power_of_two);
}

// The parameters are compared at the end in any case, so the last step needs no check of its own.
bool check_is_due(const Settings& settings, int steps_done) {
  return settings.check_every > 0 && steps_done % settings.check_every == 0 && steps_done != settings.steps;
}

bool checkpoint_is_due(const Settings& settings, int steps_done) {
  return settings.saves && (steps_done % settings.checkpoint_every == 0 || steps_done == settings.steps);
}

}  // namespace

std::string_view name_of(Act act) {
  constexpr std::array<std::string_view, 16> kNames{"beginning", "parameters", "state", "validation", "validation_sum", "gradients",
                                                    "average",   "loss_sum",   "apply", "speeds",     "hashes",         "checkpoint",
                                                    "waiting",   "sample",     "end",   "regroup"};
  return kNames[static_cast<std::size_t>(act)];
}

bool is_exchange(Act act) {
  switch (act) {
    case Act::beginning:
    case Act::parameters:
    case Act::state:
    case Act::validation_sum:
    case Act::loss_sum:
    case Act::speeds:
    case Act::hashes:
    case Act::waiting:
      return true;
    default:
      return false;
  }
}

ActSequence::ActSequence(const Settings& settings) : settings_(settings), acts_{Act::beginning} {}

void ActSequence::begin_at(int step) {
  step_ = step;
  acts_.push_back(Act::parameters);
  if (settings_.guests > 0 && step > 0) acts_.push_back(Act::state);
  acts_.push_back(Act::validation);
  acts_.push_back(Act::validation_sum);
}

void ActSequence::go_on() {
  if (act() == Act::end) return;
  if (act() == Act::apply) committed_ = step_ + 1;
  if (++next_ < acts_.size()) return;
  if (step_planned_) ++step_;
  step_planned_ = step_ < settings_.steps;
  acts_.clear();
  next_ = 0;
  if (step_planned_) return plan_step();
  plan_end();
}

void ActSequence::go_back() {
  next_ = 0;
  step_planned_ = committed_ > 0;
  if (!step_planned_) {
    acts_ = {Act::beginning};
    return;
  }
  step_ = committed_ - 1;
  acts_ = acts_after_commit();
  acts_.insert(acts_.begin(), Act::apply);
  go_on();
}

void ActSequence::plan_step() {
  acts_ = {Act::gradients, Act::average, Act::loss_sum, Act::apply};
  const std::vector<Act> more = acts_after_commit();
  acts_.insert(acts_.end(), more.begin(), more.end());
}

std::vector<Act> ActSequence::acts_after_commit() const {
  std::vector<Act> acts;
  if (speeds_are_due(settings_, step_ + 1)) acts.push_back(Act::speeds);
  if (check_is_due(settings_, step_ + 1)) acts.push_back(Act::hashes);
  if (checkpoint_is_due(settings_, step_ + 1)) acts.push_back(Act::checkpoint);
  return acts;
}

void ActSequence::plan_end() { acts_ = {Act::validation, Act::validation_sum, Act::hashes, Act::waiting, Act::sample, Act::end}; }

}  // namespace train_text
