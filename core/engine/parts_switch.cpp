#include "core/engine/parts_switch.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

namespace {

/// A group keeps the changes behind its last one whose operations have all started. All groups together keep so many besides.
constexpr std::size_t kMostChanges = 255;

/// Whether a message can name so many operations. So a change adds at most one to those that each of kMostToldGroups groups keeps.
template <class Groups>
bool fits(const Groups& groups, std::vector<std::uint64_t> Groups::value_type::* numbers) {
  std::size_t count = 0;
  for (const auto& group : groups) count += (group.*numbers).size();
  return groups.size() <= wire::kMostToldGroups && count <= wire::kMostToldNumbers;
}

}  // namespace

std::vector<std::uint32_t> PartsSwitch::in_use() const {
  Topology topology = host_.options().topology;
  if (last_) topology.set_speeds(last_->speeds);
  std::vector<std::uint32_t> speeds;
  for (int rank = 0; rank < host_.options().size; ++rank) speeds.push_back(topology.speed(rank));
  return speeds;
}

bool PartsSwitch::change(const std::vector<std::uint32_t>& speeds, std::function<void(bool changed)> done) {
  const int size = host_.options().size;
  bool all_are_here = host_.failure().ok();
  for (int rank = 1; rank < size; ++rank) all_are_here = all_are_here && !host_.has_left_world(rank);
  if (!all_are_here || held_since_) return false;
  ++number_;
  take_answer_ = &PartsSwitch::on_answer;
  conclude_ = &PartsSwitch::conclude;
  wanted_ = speeds;
  first_.clear();
  answered_.assign(static_cast<std::size_t>(size), false);
  done_ = std::move(done);
  held_since_ = host_.loop().now();
  for (int rank = 1; rank < size; ++rank) host_.send_control(rank, wire::PartsQuestion{number_});
  on_answer(0, own_answer());
  return true;
}

bool PartsSwitch::has_room() const {
  std::size_t kept = 0;
  groups_.for_each_group([&](const GroupEngine& group) { kept += std::max<std::size_t>(group.kept_changes(), 1) - 1; });
  return kept < kMostChanges;
}

wire::PartsAnswer PartsSwitch::own_answer() const {
  wire::PartsAnswer answer{number_, groups_.unstarted(), false};
  answer.refuses = !has_room() || !fits(answer.unstarted, &wire::GroupNumbers::numbers);
  if (answer.refuses) answer.unstarted.clear();
  return answer;
}

bool PartsSwitch::on_message(int from, const wire::ControlMessage& message, bool counts) {
  const bool may_come = counts && host_.options().follows_speeds();
  if (const auto* rates = std::get_if<wire::LinkRates>(&message)) {
    if (may_come && rates_handler_) rates_handler_(from, *rates);
  } else if (const auto* question = std::get_if<wire::PartsQuestion>(&message)) {
    if (may_come) on_question(from, *question);
  } else if (const auto* answer = std::get_if<wire::PartsAnswer>(&message)) {
    // One to a question that was taken back is of no use any more.
    if (!may_come || !held_since_ || answer->number != number_) return true;
    if (take_answer_ == nullptr)
      refuse(from, "an answer about parts that is not due");
    else
      (this->*take_answer_)(from, *answer);
  } else if (const auto* change = std::get_if<wire::PartsChange>(&message)) {
    if (may_come) on_change(from, *change);
  } else {
    return false;
  }
  return true;
}

void PartsSwitch::on_question(int from, const wire::PartsQuestion& question) {
  if (from != 0 || held_since_) return refuse(from, "a question about parts that is not due");
  number_ = question.number;
  held_since_ = host_.loop().now();
  host_.send_control(0, own_answer());
}

void PartsSwitch::on_answer(int from, const wire::PartsAnswer& answer) {
  if (answered_.empty() || answered_[static_cast<std::size_t>(from)]) return refuse(from, "an answer about parts that is not due");
  answered_[static_cast<std::size_t>(from)] = true;
  if (answer.refuses) return conclude({});
  for (const wire::GroupNumbers& theirs : answer.unstarted) {
    std::vector<std::uint64_t>& known = first_[theirs.key];
    known.resize(std::max(known.size(), theirs.numbers.size()));
    for (std::size_t stream = 0; stream < theirs.numbers.size(); ++stream) known[stream] = std::max(known[stream], theirs.numbers[stream]);
  }
  if (!fits(first_, &decltype(first_)::value_type::second)) return conclude({});
  if (std::find(answered_.begin(), answered_.end(), false) == answered_.end()) conclude(wanted_);
}

/// Takes the change back where `speeds` is empty.
void PartsSwitch::conclude(const std::vector<std::uint32_t>& speeds) {
  wire::PartsChange change{number_, speeds, {}};
  if (!speeds.empty())
    for (auto& [key, numbers] : first_) change.first.push_back({key, std::move(numbers)});
  first_.clear();
  answered_.clear();
  for (int rank = 1; rank < host_.options().size; ++rank)
    if (!host_.has_left_world(rank)) host_.send_control(rank, change);
  take(change);
  if (!speeds.empty()) patience_ = kPatience;
  host_.loop().defer([done = std::exchange(done_, nullptr), changed = !speeds.empty()] { done(changed); });
}

void PartsSwitch::on_change(int from, const wire::PartsChange& change) {
  if (from != 0 || !held_since_ || change.number != number_) return refuse(from, "a change of parts that is not due");
  const auto is_speed = [](std::uint32_t speed) { return speed >= 1 && speed <= kFullSpeed; };
  const bool fits = change.speeds.empty() || change.speeds.size() == static_cast<std::size_t>(host_.options().size);
  if (!fits || !std::all_of(change.speeds.begin(), change.speeds.end(), is_speed) || !take(change))
    refuse(from, "a change of parts that does not fit");
}

/// Returns false where operations would change that have started here, or more changes are kept than memory should hold.
bool PartsSwitch::take(const wire::PartsChange& change) {
  held_since_.reset();
  bool fits = change.speeds.empty() || has_room();
  if (fits && !change.speeds.empty()) {
    groups_.for_each_group([&](GroupEngine& group) { fits = group.change_speeds(change) && fits; });
    last_.emplace(change);
    inherited_.clear();
  }
  groups_.for_each_group([](GroupEngine& group) { group.go_on(); });
  return fits;
}

void PartsSwitch::on_left(int rank) {
  if (!held_since_) return;
  if (conclude_ != nullptr) return (this->*conclude_)({});
  if (rank == 0) take({});
}

void PartsSwitch::on_tick(Instant now) {
  if (!held_since_) return;
  const Duration waited = now - *held_since_;
  if (conclude_ != nullptr && waited > patience_) {
    patience_ = std::min(patience_ * 2, kLongestPatience);
    return (this->*conclude_)({});
  }
  if (waited > host_.options().operation_timeout)
    host_.fail({Errc::timed_out, "rank 0 asked which parts may change and has said nothing since", 0});
}

void PartsSwitch::refuse(int from, const char* what) { host_.on_violation(from, "rank " + std::to_string(from) + " sent " + what); }

}  // namespace ringlet
