#include "tests/core/agreement_world.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/hash.hpp"

namespace ringlet::test {

namespace {

constexpr std::uint32_t kEpoch = 5;
// Higher than every ballot that ranks begin here.
constexpr std::uint64_t kProbeRound = 1U << 30;

std::string text_of(const Agreement::Outcome& outcome) {
  std::string text = "members";
  for (const std::uint32_t rank : outcome.members) text += " " + std::to_string(rank);
  return text + " of lineage " + std::to_string(outcome.lineage);
}

bool contains(const std::vector<std::uint32_t>& members, int rank) {
  return std::find(members.begin(), members.end(), static_cast<std::uint32_t>(rank)) != members.end();
}

}  // namespace

AgreementWorld::AgreementWorld(AgreementTable& table, int size, int guests, Faults faults, BrokenRule broken)
    : table_(&table), size_(size), guests_(guests), faults_(faults), broken_(broken) {
  std::vector<bool> voters;
  for (int rank = 0; rank < size; ++rank) voters.push_back(votes(rank));
  for (int rank = 0; rank < size; ++rank)
    agreements_[static_cast<std::size_t>(rank)] = table.add(Agreement({size, rank, kEpoch, kLineage, voters}));
}

std::vector<Move> AgreementWorld::moves() const {
  std::vector<Move> moves;
  const auto add = [&](Event event, int rank, int peer, bool fault) { moves.push_back({Move::Kind::event, event, rank, peer, fault}); };
  for (int rank = 0; rank < size_; ++rank) {
    if (!alive(rank)) continue;
    if (faults_.crashes > 0) moves.push_back({Move::Kind::crash, Event::start, rank, 0, true});
    if (decided(rank)) {
      // A voter ignores what comes then, and a guest answers.
      for (int peer = 0; peer < size_; ++peer)
        if (queue(peer, rank) != 0) add(Event::receive, rank, peer, false);
      continue;
    }
    const bool started = (started_ >> rank & 1U) != 0;
    if (!started) add(Event::start, rank, 0, false);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank) continue;
      if (faults_.proofs && !alive(peer) && votes(peer) && !proved(rank, peer)) add(Event::prove_dead, rank, peer, true);
      if (!hears(rank, peer)) continue;
      if (queue(peer, rank) != 0) add(Event::receive, rank, peer, false);
      const bool broken = !alive(peer) || !hears(peer, rank);
      if (broken || faults_.suspicions > 0) add(Event::lose, rank, peer, !broken);
    }
    if (!started || !votes(rank)) continue;
    if (faults_.take_overs > 0) add(Event::take_over, rank, 0, true);
    if (!view(rank).leads) continue;
    if (faults_.impatience > 0) add(Event::stop_waiting, rank, 0, true);
    if (faults_.forks > 0 && view(rank).lacks_quorum) add(Event::stand_alone, rank, 0, true);
  }
  return moves;
}

std::string AgreementWorld::make(const Move& move) {
  if (move.kind == Move::Kind::crash) {
    --faults_.crashes;
    crash(move.rank);
    return "";
  }
  switch (move.event) {
    case Event::start:
      started_ |= 1U << move.rank;
      break;
    case Event::receive:
      return receive(move.rank, move.peer);
    case Event::lose:
      queue(move.peer, move.rank) = 0;
      if (move.fault) {
        --faults_.suspicions;
        suspected_ |= 1U << move.rank | 1U << move.peer;
      }
      if (broken_ == BrokenRule::silence_is_proof) return step(move.rank, Event::prove_dead, move.peer);
      break;
    case Event::prove_dead:
      queue(move.peer, move.rank) = 0;
      break;
    case Event::take_over:
      --faults_.take_overs;
      break;
    case Event::stop_waiting:
      --faults_.impatience;
      impatient_ = true;
      break;
    case Event::stand_alone:
      --faults_.forks;
      break;
  }
  return step(move.rank, move.event, move.peer);
}

std::string AgreementWorld::receive(int rank, int from) {
  const auto [message, rest] = table_->pop(queue(from, rank));
  queue(from, rank) = rest;
  if (broken_ == BrokenRule::guests_believed && !votes(from) && std::holds_alternative<wire::Decision>(table_->message(message)))
    for (int other = 0; other < size_; ++other)
      if (votes(other) && hears(rank, other)) return step(rank, Event::receive, other, message);
  return step(rank, Event::receive, from, tamper_received(message));
}

void AgreementWorld::crash(int rank) {
  crashed_ |= 1U << rank;
  // What it was is of no importance any more, so that worlds which differ in nothing else are one.
  for (int peer = 0; peer < size_; ++peer) {
    queue(peer, rank) = 0;
    if (!hears(peer, rank) || deaf(peer)) queue(rank, peer) = 0;
  }
}

std::string AgreementWorld::step(int rank, Event event, int peer, Id message) {
  std::string wrong = step_once(rank, event, peer, message);
  return wrong.empty() && broken_ != BrokenRule::none ? break_rule(rank) : wrong;
}

std::string AgreementWorld::step_once(int rank, Event event, int peer, Id message) {
  Id& agreement = agreements_[static_cast<std::size_t>(rank)];
  const AgreementTable::View before = view(rank);
  const AgreementTable::Step& step = table_->step(agreement, event, peer, message);
  agreement = step.next;
  std::vector<int> forged;  // ranks whose acceptance a leader does not wait for
  for (const AgreementTable::Sent& sent : step.sends) {
    if (broken_ == BrokenRule::decision_not_told && std::holds_alternative<wire::Decision>(table_->message(sent.message))) continue;
    const Id changed = tamper_sent(sent.message, event, message);
    if (std::holds_alternative<wire::Proposal>(table_->message(sent.message))) forged.push_back(sent.to);
    if (alive(sent.to) && hears(sent.to, rank) && !deaf(sent.to)) queue(rank, sent.to) = table_->push(queue(rank, sent.to), changed);
  }
  if (view(rank).decided && !before.decided) {
    for (int from = 0; deaf(rank) && from < size_; ++from) queue(from, rank) = 0;
    const bool told = event == Event::receive && std::holds_alternative<wire::Decision>(table_->message(message));
    return check_outcome(rank, before.leads && !told);
  }
  // Losses that a rank concludes by itself.
  for (int from = 0; from < size_; ++from)
    if (from != rank && !hears(rank, from)) queue(from, rank) = 0;
  if (forged.empty() || (broken_ != BrokenRule::no_acceptances && broken_ != BrokenRule::not_all_acceptances)) return "";
  if (broken_ == BrokenRule::not_all_acceptances) forged.erase(forged.begin(), forged.end() - 1);
  const auto ballot = std::get<wire::Proposal>(table_->message(step.sends.back().message)).ballot;
  const Id acceptance = table_->add(AgreementMessage(wire::Acceptance{kEpoch, ballot}));
  for (const int from : forged) {
    const std::string wrong = step_once(rank, Event::receive, from, acceptance);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string AgreementWorld::break_rule(int rank) {
  if (broken_ == BrokenRule::no_patience && view(rank).leads) return step_once(rank, Event::stop_waiting, 0, 0);
  if (broken_ != BrokenRule::majority_of_living || !view(rank).lacks_quorum) return "";
  int heard = 1, living = 1;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank || !votes(peer)) continue;
    heard += hears(rank, peer);
    living += !proved(rank, peer);
  }
  if (heard <= living / 2) return "";
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank || !votes(peer) || proved(rank, peer)) continue;
    if (hears(rank, peer)) continue;
    const std::string wrong = step_once(rank, Event::prove_dead, peer, 0);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

AgreementWorld::Id AgreementWorld::tamper_received(Id message) const {
  const auto* report = std::get_if<wire::Report>(&table_->message(message));
  if (report == nullptr) return message;
  wire::Report changed = *report;
  if (broken_ == BrokenRule::accepted_value_ignored) {
    changed.accepted_ballot = changed.accepted_lineage = 0;
    changed.accepted.clear();
  } else if (broken_ == BrokenRule::dead_may_be_heard) {
    std::erase_if(changed.hears, [&](std::uint32_t peer) { return !alive(static_cast<int>(peer)); });
  } else {
    return message;
  }
  return table_->add(AgreementMessage(changed));
}

AgreementWorld::Id AgreementWorld::tamper_sent(Id message, Event event, Id cause) const {
  const auto* report = std::get_if<wire::Report>(&table_->message(message));
  if (broken_ != BrokenRule::promise_backwards || event != Event::receive || report == nullptr || report->promised == report->ballot)
    return message;
  if (std::holds_alternative<wire::Proposal>(table_->message(cause)))
    return table_->add(AgreementMessage(wire::Acceptance{kEpoch, report->ballot}));
  wire::Report changed = *report;
  changed.promised = changed.ballot;
  return table_->add(AgreementMessage(changed));
}

Agreement::Outcome AgreementWorld::outcome_of(int rank) const {
  Agreement::Outcome outcome = *at(rank).outcome();
  if (broken_ == BrokenRule::one_lineage && outcome.lineage != kLineage) outcome.lineage = kLineage + 1;
  return outcome;
}

std::string AgreementWorld::check_outcome(int rank, bool led) {
  const Agreement::Outcome outcome = outcome_of(rank);
  const std::string who = "rank " + std::to_string(rank) + " has decided " + text_of(outcome);
  const bool fork = outcome.lineage != kLineage;
  if (outcome.members.empty() || !std::is_sorted(outcome.members.begin(), outcome.members.end()) ||
      outcome.members.back() >= static_cast<std::uint32_t>(size_))
    return who + ", which is no list of members";
  int members = 0, missing_alive = 0;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank && alive(peer) && votes(peer) && votes(rank) && decided(peer)) {
      const Agreement::Outcome other = outcome_of(peer);
      if (other.lineage == outcome.lineage && other != outcome) return who + ", but rank " + std::to_string(peer) + " " + text_of(other);
    }
    if (!votes(peer)) continue;
    const bool member = contains(outcome.members, peer);
    members += member;
    missing_alive += !member && alive(peer);
    if (!fork && !member && alive(peer) && !impatient_ && (suspected_ >> peer & 1U) == 0)
      return who + " without rank " + std::to_string(peer) + ", which everybody hears";
  }
  if (fork) return contains(outcome.members, rank) ? "" : who + ", a lineage to which it does not belong";
  if (members <= (size_ - guests_) / 2 && missing_alive > 0) return who + " without a quorum";
  return led ? check_all_accepted(rank) : "";
}

/// What a rank has accepted shows in its answer to a ballot that is higher than all others.
std::string AgreementWorld::check_all_accepted(int rank) const {
  // These two break agreement, which is to be shown.
  if (impatient_ || broken_ == BrokenRule::no_acceptances || broken_ == BrokenRule::promise_backwards) return "";
  const Agreement::Outcome& outcome = *at(rank).outcome();
  const Id probe = table_->add(AgreementMessage(wire::Query{kEpoch, kProbeRound << 32 | static_cast<std::uint64_t>(rank)}));
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank || !contains(outcome.members, peer) || !alive(peer) || !linked(rank, peer) || decided(peer)) continue;
    const auto& step = table_->step(agreements_[static_cast<std::size_t>(peer)], Event::receive, rank, probe);
    const auto* report = step.sends.empty() ? nullptr : std::get_if<wire::Report>(&table_->message(step.sends.back().message));
    if (report == nullptr || report->accepted != outcome.members)
      return "rank " + std::to_string(rank) + " has decided " + text_of(outcome) + ", which member " + std::to_string(peer) +
             " has not accepted";
  }
  return "";
}

void AgreementWorld::start_all() {
  for (int rank = 0; rank < size_; ++rank)
    if (alive(rank) && (started_ >> rank & 1U) == 0) (void)make({Move::Kind::event, Event::start, rank, 0, false});
}

void AgreementWorld::prove_all() {
  for (int rank = 0; rank < size_; ++rank)
    for (int peer = 0; peer < size_; ++peer)
      if (alive(rank) && !decided(rank) && !alive(peer) && votes(peer) && !proved(rank, peer))
        (void)make({Move::Kind::event, Event::prove_dead, rank, peer, true});
}

std::string AgreementWorld::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (const Move& move : moves()) {
      if (move.fault) continue;
      const std::string wrong = make(move);
      if (!wrong.empty()) return wrong;
      moved = true;
      break;
    }
  }
  return "";
}

std::string AgreementWorld::run_timers() {
  impatient_ = true;
  std::string wrong = settle();
  // Each round is long enough for all messages to arrive.
  for (int round = 0; round < 2 * size_ + 2 && wrong.empty(); ++round)
    for (int rank = 0; rank < size_ && wrong.empty(); ++rank) {
      if (!alive(rank) || decided(rank) || !votes(rank)) continue;
      for (const Event timer : {Event::stop_waiting, Event::take_over, Event::stop_waiting}) {
        if (wrong.empty() && !decided(rank)) wrong = step(rank, timer);
        if (wrong.empty()) wrong = settle();
      }
    }
  for (int rank = 0; rank < size_ && wrong.empty(); ++rank)
    if (alive(rank) && votes(rank) && !decided(rank) && may_decide(rank)) wrong = "rank " + std::to_string(rank) + " never decides";
  return wrong;
}

/// Whether the living ranks that `leader` hears, and that hear each other, are a quorum.
bool AgreementWorld::may_decide(int leader) const {
  std::vector<int> set;
  for (int rank = 0; rank < size_; ++rank)
    if (alive(rank) && (rank == leader || linked(rank, leader))) set.push_back(rank);
  while (true) {
    const auto broken = [&](int one) {
      return std::count_if(set.begin(), set.end(), [&](int other) { return one != other && !linked(one, other); });
    };
    const auto worst = std::max_element(set.begin(), set.end(), [&](int one, int other) { return broken(one) <= broken(other); });
    if (broken(*worst) == 0) break;
    set.erase(worst);
  }
  const auto members = std::count_if(set.begin(), set.end(), [&](int rank) { return votes(rank); });
  if (members > (size_ - guests_) / 2) return true;
  for (int rank = 0; rank < size_; ++rank)
    if (votes(rank) && std::find(set.begin(), set.end(), rank) == set.end() && (alive(rank) || !proved(leader, rank))) return false;
  return true;
}

std::string AgreementWorld::check_progress(bool promptly) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!alive(rank)) continue;
    for (int peer = 0; peer < size_; ++peer) {
      if (!alive(peer) || decided(rank) || !decided(peer) || !votes(peer) || !linked(rank, peer)) continue;
      if (at(peer).outcome()->lineage == kLineage) return "rank " + std::to_string(rank) + " was not told of the decision";
    }
    if (promptly && votes(rank) && !decided(rank) && may_decide(rank)) return "rank " + std::to_string(rank) + " waits for a timer";
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (!alive(rank) || !votes(rank) || decided(rank) || !may_decide(rank)) continue;
    AgreementWorld later = *this;
    later.faults_ = {0, 0, 3, 3, 0, false};
    // The first ballot may be refused, from which the rank learns which ballot is high enough.
    for (int ballot = 0; ballot < 3 && !later.decided(rank); ++ballot) {
      std::string wrong = later.make({Move::Kind::event, Event::take_over, rank, 0, true});
      if (wrong.empty()) wrong = later.settle();
      if (wrong.empty() && later.view(rank).leads) wrong = later.make({Move::Kind::event, Event::stop_waiting, rank, 0, true});
      if (wrong.empty()) wrong = later.settle();
      if (!wrong.empty()) return wrong;
    }
    if (!later.decided(rank)) return "rank " + std::to_string(rank) + " never decides";
  }
  return "";
}

std::uint64_t AgreementWorld::hash() const {
  std::array<std::uint32_t, 16 + kMaxRanks + kMaxRanks * kMaxRanks> numbers;
  std::size_t count = 0;
  for (const std::uint32_t number :
       {crashed_, started_, suspected_, static_cast<std::uint32_t>(impatient_), static_cast<std::uint32_t>(faults_.crashes),
        static_cast<std::uint32_t>(faults_.suspicions), static_cast<std::uint32_t>(faults_.take_overs),
        static_cast<std::uint32_t>(faults_.impatience), static_cast<std::uint32_t>(faults_.forks)})
    numbers[count++] = number;
  for (int rank = 0; rank < size_; ++rank) {
    numbers[count++] = alive(rank) ? agreements_[static_cast<std::size_t>(rank)] : 0;
    for (int peer = 0; peer < size_; ++peer) numbers[count++] = queue(rank, peer);
  }
  return hash_of({reinterpret_cast<const char*>(numbers.data()), count * sizeof numbers[0]});
}

}  // namespace ringlet::test
