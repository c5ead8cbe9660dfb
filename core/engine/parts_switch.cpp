#include "core/engine/parts_switch.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

namespace {

/// Changes are kept while a stream has operations before them; then rank 0 makes no more of them.
constexpr std::size_t kMostChanges = 256;

}  // namespace

void PartsSwitch::forget(const GroupEngine& group) {
  if (group_ == &group) group_ = nullptr;
}

std::vector<std::uint32_t> PartsSwitch::in_use() const {
  const Topology& topology = group_ != nullptr ? group_->topology_of_last_change() : host_.options().topology;
  std::vector<std::uint32_t> speeds;
  for (int rank = 0; rank < host_.options().size; ++rank) speeds.push_back(topology.speed(rank));
  return speeds;
}

bool PartsSwitch::change(const std::vector<std::uint32_t>& speeds, std::function<void(bool changed)> done) {
  const int size = host_.options().size;
  bool all_are_here = group_ != nullptr && host_.failure().ok() && group_->kept_changes() < kMostChanges;
  for (int rank = 1; rank < size; ++rank) all_are_here = all_are_here && !host_.has_left_world(rank);
  if (!all_are_here || held_since_) return false;
  ++number_;
  wanted_ = speeds;
  first_.clear();
  answered_.assign(static_cast<std::size_t>(size), false);
  done_ = std::move(done);
  hold_back();
  for (int rank = 1; rank < size; ++rank) host_.send_control(rank, wire::PartsQuestion{number_});
  on_answer(0, {number_, group_->unstarted()});
  return true;
}

void PartsSwitch::hold_back() {
  held_since_ = host_.loop().now();
  if (group_ != nullptr) group_->hold_back();
}

bool PartsSwitch::on_message(int from, const wire::ControlMessage& message, bool counts) {
  const bool may_come = counts && host_.options().measures_speeds();
  if (const auto* rates = std::get_if<wire::LinkRates>(&message)) {
    if (may_come && rates_handler_) rates_handler_(from, *rates);
  } else if (const auto* question = std::get_if<wire::PartsQuestion>(&message)) {
    if (may_come) on_question(from, *question);
  } else if (const auto* answer = std::get_if<wire::PartsAnswer>(&message)) {
    // One to a question that was taken back is of no use any more.
    if (may_come && held_since_ && answer->number == number_) on_answer(from, *answer);
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
  hold_back();
  host_.send_control(0, wire::PartsAnswer{number_, group_ != nullptr ? group_->unstarted() : std::vector<std::uint64_t>{}});
}

void PartsSwitch::on_answer(int from, const wire::PartsAnswer& answer) {
  if (answered_.empty() || answered_[static_cast<std::size_t>(from)]) return refuse(from, "an answer about parts that is not due");
  answered_[static_cast<std::size_t>(from)] = true;
  if (first_.size() < answer.unstarted.size()) first_.resize(answer.unstarted.size());
  for (std::size_t stream = 0; stream < answer.unstarted.size(); ++stream)
    first_[stream] = std::max(first_[stream], answer.unstarted[stream]);
  if (std::find(answered_.begin(), answered_.end(), false) == answered_.end()) conclude(wanted_);
}

void PartsSwitch::conclude(const std::vector<std::uint32_t>& speeds) {
  const wire::PartsChange change{number_, speeds, speeds.empty() ? std::vector<std::uint64_t>{} : first_};
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
  if (group_ == nullptr) return true;
  const std::vector<std::uint64_t> unstarted = group_->unstarted();
  const auto begins_later = [&](std::size_t stream) { return stream < change.first.size() && change.first[stream] >= unstarted[stream]; };
  bool fits = group_->kept_changes() < kMostChanges;
  for (std::size_t stream = 0; stream < unstarted.size() && !change.speeds.empty(); ++stream) fits = fits && begins_later(stream);
  if (fits && !change.speeds.empty()) group_->change_speeds(change.speeds, change.first);
  group_->go_on();
  return fits;
}

void PartsSwitch::on_left(int rank) {
  if (!held_since_) return;
  if (host_.options().rank == 0) return conclude({});
  if (rank == 0) take({});
}

void PartsSwitch::on_tick(Instant now) {
  if (!held_since_) return;
  const Duration waited = now - *held_since_;
  if (host_.options().rank == 0 && waited > patience_) {
    patience_ = std::min(patience_ * 2, kLongestPatience);
    return conclude({});
  }
  if (waited > host_.options().operation_timeout)
    host_.fail({Errc::timed_out, "rank 0 asked which parts may change and has said nothing since", 0});
}

void PartsSwitch::refuse(int from, const char* what) {
  host_.fail({Errc::protocol_error, "rank " + std::to_string(from) + " sent " + what, from});
}

}  // namespace ringlet
