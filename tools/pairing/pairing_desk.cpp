#include "tools/pairing/pairing_desk.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::pairing {

namespace {

constexpr Duration kFirstPause = Duration::seconds(1);
constexpr std::ptrdiff_t kPerAddress = 2;
constexpr std::size_t kPerAddressAndSecond = 4;
// Limits the last messages kept for connections that end without fetching theirs.
constexpr std::size_t kMaxLastWords = 16;

}  // namespace

PairingDesk::PairingDesk(DeskOptions options, Secret token, FillRandom random, Instant now)
    : options_(std::move(options)), token_(std::move(token)), random_(std::move(random)) {
  show_code(now);
}

void PairingDesk::show_code(Instant now) {
  code_ = make_code(options_.digits, random_);
  ++codes_;
  state_ = State::shows_code;
  next_ = now + options_.validity;
}

std::optional<PairingDesk::Id> PairingDesk::admit(const std::string& address, Instant now) {
  advance(now);
  const auto same = [&](const auto& entry) { return entry.second.address == address; };
  if (state_ != State::shows_code || sessions_.size() >= options_.conversations ||
      std::count_if(sessions_.begin(), sessions_.end(), same) >= kPerAddress || !may_begin(address, now))
    return std::nullopt;
  const Id id = ++last_id_;
  sessions_[id] = {
      address, now + options_.patience,
      std::make_unique<HostSession>(options_.group, PairedMachine{options_.name, options_.machine_key}, code_, token_, random_)};
  return id;
}

bool PairingDesk::may_begin(const std::string& address, Instant now) {
  if (now - second_ >= Duration::seconds(1)) {
    begun_.clear();
    all_begun_ = 0;
    second_ = now;
  }
  if (all_begun_ >= options_.per_second || begun_[address] >= kPerAddressAndSecond) return false;
  ++begun_[address];
  ++all_begun_;
  return true;
}

void PairingDesk::receive(Id id, ConstBytes bytes, Instant now) {
  advance(now);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second.talk->receive(bytes);
  judge(id, now);
}

void PairingDesk::judge(Id id, Instant now) {
  const HostSession& talk = *sessions_.at(id).talk;
  const HostSession::Stage stage = talk.stage();
  if (stage >= HostSession::Stage::handed_out && state_ == State::shows_code) {
    // The code is void from here on.
    state_ = State::hands_out;
    newcomer_ = talk.newcomer();
    close_all_but(id);
  }
  if (!talk.over()) return;
  if (stage == HostSession::Stage::confirmed) newcomer_ = talk.newcomer();
  close(id);
  if (stage == HostSession::Stage::refused)
    on_wrong_code(now);
  else if (stage == HostSession::Stage::confirmed)
    state_ = State::paired;
  else if (stage == HostSession::Stage::unconfirmed)
    state_ = State::unconfirmed;
}

void PairingDesk::on_wrong_code(Instant now) {
  close_all_but(0);
  pause_ = wrong_ == 0 ? kFirstPause : pause_ * 2;
  ++wrong_;
  state_ = wrong_ >= options_.wrong_codes ? State::gave_up : State::pauses;
  next_ = now + pause_;
}

void PairingDesk::close(Id id) {
  const auto node = sessions_.extract(id);
  if (node.empty()) return;
  if (last_words_.size() == kMaxLastWords) last_words_.erase(last_words_.begin());
  last_words_[id] = node.mapped().talk->take_outgoing();
}

void PairingDesk::close_all_but(Id id) {
  for (auto place = sessions_.begin(); place != sessions_.end();) {
    const auto current = place++;
    if (current->first != id) close(current->first);
  }
}

std::string PairingDesk::take_outgoing(Id id) {
  if (const auto found = sessions_.find(id); found != sessions_.end()) return found->second.talk->take_outgoing();
  const auto node = last_words_.extract(id);
  return node.empty() ? std::string() : std::move(node.mapped());
}

void PairingDesk::leave(Id id, Instant now) {
  advance(now);
  last_words_.erase(id);
  if (sessions_.erase(id) != 0 && state_ == State::hands_out) state_ = State::unconfirmed;
}

void PairingDesk::advance(Instant now) {
  if (over()) return;
  for (auto place = sessions_.begin(); place != sessions_.end();) {
    const auto current = place++;
    if (current->second.deadline > now) continue;
    close(current->first);
    if (state_ == State::hands_out) state_ = State::unconfirmed;
  }
  if (next_ > now) return;
  if (state_ == State::pauses) return show_code(now);
  if (state_ != State::shows_code) return;
  state_ = State::expired;
  close_all_but(0);
}

std::optional<Instant> PairingDesk::next_deadline() const {
  if (over()) return std::nullopt;
  std::optional<Instant> next;
  if (state_ != State::hands_out) next = next_;
  for (const auto& [id, session] : sessions_)
    if (!next || session.deadline < *next) next = session.deadline;
  return next;
}

}  // namespace ringlet::pairing
