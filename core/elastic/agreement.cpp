#include "core/elastic/agreement.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"

namespace ringlet {

namespace {

// A ballot is its round and the rank that leads it. Rounds from peers are bounded, so that the next one never overflows.
constexpr int kRoundShift = 32;
constexpr std::uint64_t kMaxRound = std::uint64_t{1} << 31;

std::uint64_t round_of(std::uint64_t ballot) { return ballot >> kRoundShift; }
int leader_of(std::uint64_t ballot) { return static_cast<int>(ballot & 0x7fff'ffffU); }

void append(std::string& bytes, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift & 0xff));
}

void append(std::string& bytes, const Agreement::Outcome& value) {
  append(bytes, value.lineage);
  append(bytes, value.members.size());
  for (const std::uint32_t rank : value.members) append(bytes, rank);
}

template <class... Kinds>
wire::ControlMessage to_control(const std::variant<Kinds...>& message) {
  return std::visit([](const auto& kind) -> wire::ControlMessage { return kind; }, message);
}

}  // namespace

std::uint32_t epoch_of(const AgreementMessage& message) {
  return std::visit([](const auto& one) { return one.epoch; }, message);
}

std::optional<AgreementMessage> of_agreement(const wire::ControlMessage& message) {
  return std::visit(
      [](const auto& one) -> std::optional<AgreementMessage> {
        if constexpr (std::is_constructible_v<AgreementMessage, decltype(one)>)
          return AgreementMessage(one);
        else
          return std::nullopt;
      },
      message);
}

Agreement::Agreement(Setup setup) : setup_(std::move(setup)), ranks_(setup_.votes, setup_.self), early_(setup_.votes.size()) {
  RINGLET_CHECK(ranks_.exists(setup_.self) && setup_.votes.size() == static_cast<std::size_t>(setup_.size));
}

void Agreement::start() {
  if (started_) return;
  started_ = true;
  for (int peer = 0; peer < setup_.size; ++peer)
    if (const auto early = std::exchange(early_[static_cast<std::size_t>(peer)], std::nullopt)) receive(peer, *early);
  begin_ballot_if_first();
}

void Agreement::receive(int from, const AgreementMessage& message) {
  if (from == setup_.self || !hears(from)) return;
  if (!started_) {
    // A report would promise that this rank takes no further part in the epoch. Of one rank's messages the last replaces the others.
    early_[static_cast<std::size_t>(from)] = message;
    return;
  }
  if (outcome_) {
    // A voter has told everybody already, on the same links. A guest, which tells nobody, says that it takes no further part.
    if (!self_votes() && (std::holds_alternative<wire::Query>(message) || std::holds_alternative<wire::Proposal>(message)))
      send(from, wire::Decision{setup_.epoch, outcome_->members, outcome_->lineage});
    return;
  }
  std::visit([&](const auto& kind) { on_message(from, kind); }, message);
  proceed();
}

void Agreement::on_message(int from, const wire::Query& query) {
  if (!is_ballot(query.ballot) || leader_of(query.ballot) != from) return;
  if (query.ballot > promised_) {
    promised_ = query.ballot;
    stop_leading();
  }
  report(from, query.ballot);
}

void Agreement::on_message(int from, const wire::Report& report) {
  if (!is_ballot(report.promised)) return;
  if (report.promised > promised_) {
    refused_for_ = std::max(refused_for_, report.promised);
    const auto leader = static_cast<std::uint32_t>(leader_of(report.promised));
    // A rank that has promised more to a leader that it has lost since will refuse no more than this once.
    const bool is_free = std::find(report.hears.begin(), report.hears.end(), leader) == report.hears.end();
    if (leads()) stop_leading();
    if (is_free && is_first() && leader_of(promised_) == setup_.self) begin_ballot();
    return;
  }
  if (!leads() || report.ballot != promised_ || report.promised != promised_) return;
  Survivors::Rank& rank = ranks_.at(from);
  const bool first = !std::exchange(rank.reported, true);
  rank.absent = false;
  rank.hears.assign(early_.size(), false);
  for (const std::uint32_t peer : report.hears)
    if (peer < rank.hears.size()) rank.hears[peer] = true;
  // A guest may have accepted a value that died with all its voters, so only voters' values count.
  if (phase_ == Phase::asking && rank.votes && report.accepted_ballot > found_ballot_ && report.accepted_ballot < promised_ &&
      report.accepted_lineage == setup_.lineage && is_member_list(report.accepted)) {
    found_ballot_ = report.accepted_ballot;
    found_ = {report.accepted, report.accepted_lineage};
  }
  for (const std::uint32_t peer : report.dead)
    if (peer < rank.hears.size() && peer != static_cast<std::uint32_t>(setup_.self)) note_death(static_cast<int>(peer));
  if (first && phase_ == Phase::proposing) send_proposal(from);
}

void Agreement::on_message(int from, const wire::Proposal& proposal) {
  if (!is_ballot(proposal.ballot) || leader_of(proposal.ballot) != from || !is_member_list(proposal.members)) return;
  if (proposal.ballot < promised_) return report(from, proposal.ballot);
  promised_ = proposal.ballot;
  stop_leading();
  const Outcome value{proposal.members, proposal.lineage};
  if (is_fork(value)) {
    accepted_fork_ = value;
  } else {
    accepted_fork_.reset();
    accepted_ballot_ = proposal.ballot;
    accepted_ = value;
  }
  send(from, wire::Acceptance{setup_.epoch, proposal.ballot});
}

void Agreement::on_message(int from, const wire::Acceptance& acceptance) {
  if (phase_ == Phase::proposing && acceptance.ballot == promised_) ranks_.at(from).accepted = true;
}

void Agreement::on_message(int from, const wire::Decision& decision) {
  const Outcome value{decision.members, decision.lineage};
  if (!is_member_list(value.members)) return;
  if (!ranks_.at(from).votes) {
    // The voters who told the guest may all be dead, and the living ones may decide otherwise: so guests are not learned from.
    ranks_.at(from).absent = true;
    return;
  }
  if (!is_fork(value) || accepted_fork_ == value) return learn(value);
  note_loss(from);
  on_knowledge_changed();
}

void Agreement::lose(int peer) {
  if (peer == setup_.self || !hears(peer)) return;
  note_loss(peer);
  on_knowledge_changed();
}

void Agreement::prove_dead(int peer) {
  if (!ranks_.exists(peer) || peer == setup_.self || ranks_.at(peer).dead) return;
  note_death(peer);
  on_knowledge_changed();
}

void Agreement::note_loss(int peer) {
  ranks_.at(peer).lost = true;
  sends_.erase(std::remove_if(sends_.begin(), sends_.end(), [&](const Send& send) { return send.to == peer; }), sends_.end());
  early_[static_cast<std::size_t>(peer)].reset();
}

void Agreement::note_death(int peer) {
  note_loss(peer);
  ranks_.at(peer).dead = true;
}

/// The leader needs to know, since it may wait for exactly this; and if it is the leader that is lost, the next one.
void Agreement::on_knowledge_changed() {
  if (!started_ || outcome_) return;
  if (leads()) return proceed();
  begin_ballot_if_first();
  if (leads() || promised_ == 0) return;
  const int leader = leader_of(promised_);
  report(hears(leader) ? leader : ranks_.first(), promised_);
}

void Agreement::stop_waiting_for_reports() {
  if (phase_ != Phase::asking) return;
  hurries_ = true;
  for (int peer = 0; peer < setup_.size; ++peer) ranks_.at(peer).absent = !ranks_.at(peer).reported;
  proceed();
}

void Agreement::take_over() {
  if (started_ && !outcome_ && self_votes()) begin_ballot();
}

void Agreement::stand_alone() {
  if (!lacks_quorum()) return;
  // A ballot has one value, and the one without quorum may have been proposed already.
  if (phase_ == Phase::proposing) begin_ballot();
  alone_ = true;
  proceed();
}

std::vector<Agreement::Send> Agreement::take_sends() { return std::exchange(sends_, {}); }

bool Agreement::lacks_quorum() const {
  if (outcome_ || !leads()) return false;
  if (phase_ == Phase::asking) return has_waited_enough();
  return !is_fork(proposed_) && ranks_.all_voters_have_accepted() && !ranks_.is_quorum_of_acceptances();
}

/// The lowest voter that is not lost leads, unless another one, which is not lost either, does so already. One that was refused waits for
/// take_over(), except if nobody is left who could refuse it again.
void Agreement::begin_ballot_if_first() {
  if (!started_ || outcome_ || leads() || !is_first()) return;
  if (promised_ == 0 || ranks_.at(leader_of(promised_)).lost || ranks_.is_last()) begin_ballot();
}

void Agreement::begin_ballot() {
  const std::uint64_t round = round_of(std::max(promised_, refused_for_)) + 1;
  stop_leading();
  promised_ = round << kRoundShift | static_cast<std::uint64_t>(setup_.self);
  phase_ = Phase::asking;
  found_ballot_ = accepted_ballot_;
  found_ = accepted_;
  ranks_.at(setup_.self).reported = true;
  for (int peer = 0; peer < setup_.size; ++peer) send(peer, wire::Query{setup_.epoch, promised_});
  proceed();
}

void Agreement::stop_leading() {
  phase_ = Phase::following;
  found_ballot_ = 0;
  found_ = proposed_ = {};
  hurries_ = alone_ = false;
  ranks_.end_ballot();
}

void Agreement::proceed() {
  if (phase_ == Phase::asking) propose_if_possible();
  if (phase_ == Phase::proposing) decide_if_accepted();
}

void Agreement::propose_if_possible() {
  if (!has_waited_enough()) return;
  // An accepted value may have been decided somewhere, so nothing else may be proposed.
  if (found_ballot_ != 0 && ranks_.is_quorum_of_reports()) return propose(found_);
  std::vector<std::uint32_t> members = ranks_.connected();
  if (found_ballot_ == 0 && ranks_.is_quorum(members)) return propose({std::move(members), setup_.lineage});
  if (alone_) propose(fork(std::move(members)));
}

void Agreement::propose(Outcome value) {
  phase_ = Phase::proposing;
  proposed_ = std::move(value);
  if (is_fork(proposed_)) {
    accepted_fork_ = proposed_;
  } else {
    accepted_fork_.reset();
    accepted_ballot_ = promised_;
    accepted_ = proposed_;
  }
  ranks_.at(setup_.self).accepted = true;
  for (int peer = 0; peer < setup_.size; ++peer)
    if (ranks_.at(peer).reported) send_proposal(peer);
}

/// Voters that are not members accept, too: an older value's members may no longer be a quorum.
void Agreement::send_proposal(int to) {
  const bool member = std::binary_search(proposed_.members.begin(), proposed_.members.end(), static_cast<std::uint32_t>(to));
  if (member || (ranks_.at(to).votes && !is_fork(proposed_)))
    send(to, wire::Proposal{setup_.epoch, promised_, proposed_.members, proposed_.lineage});
}

void Agreement::decide_if_accepted() {
  for (const std::uint32_t member : proposed_.members) {
    const Survivors::Rank& rank = ranks_.at(static_cast<int>(member));
    if (!rank.lost && !rank.absent && !rank.accepted) return;
  }
  if (is_fork(proposed_) || ranks_.is_quorum_of_acceptances()) learn(Outcome(proposed_));
}

void Agreement::learn(const Outcome& value) {
  outcome_ = value;
  stop_leading();
  if (!self_votes()) return;
  for (int peer = 0; peer < setup_.size; ++peer) send(peer, wire::Decision{setup_.epoch, value.members, value.lineage});
}

void Agreement::report(int to, std::uint64_t ballot) {
  wire::Report report{setup_.epoch, ballot, promised_, accepted_ballot_, accepted_.members, accepted_.lineage, {}, {}};
  for (int peer = 0; peer < setup_.size; ++peer) {
    if (peer != setup_.self && !ranks_.at(peer).lost) report.hears.push_back(static_cast<std::uint32_t>(peer));
    if (ranks_.at(peer).dead) report.dead.push_back(static_cast<std::uint32_t>(peer));
  }
  send(to, std::move(report));
}

void Agreement::send(int to, AgreementMessage message) {
  if (to != setup_.self && !ranks_.at(to).lost) sends_.push_back({to, std::move(message)});
}

bool Agreement::has_waited_enough() const {
  return ranks_.all_have_reported() && (hurries_ || found_ballot_ != 0 || ranks_.connected() == ranks_.present());
}

/// The lineage is a hash of the members, too: a rank that stands alone twice must not use one lineage for two worlds.
Agreement::Outcome Agreement::fork(std::vector<std::uint32_t> members) const {
  std::string text;
  for (const std::uint64_t number : {setup_.lineage, std::uint64_t{setup_.epoch}, static_cast<std::uint64_t>(setup_.self)})
    append(text, number);
  for (const std::uint32_t rank : members) append(text, rank);
  std::uint64_t lineage = hash_of(text);
  if (lineage == setup_.lineage) ++lineage;
  return {std::move(members), lineage};
}

bool Agreement::is_ballot(std::uint64_t ballot) const {
  return round_of(ballot) > 0 && round_of(ballot) < kMaxRound && (ballot & 0x8000'0000U) == 0 && ranks_.exists(leader_of(ballot)) &&
         ranks_.at(leader_of(ballot)).votes;
}

bool Agreement::is_member_list(const std::vector<std::uint32_t>& members) const {
  return !members.empty() && members.back() < early_.size() &&
         std::adjacent_find(members.begin(), members.end(), [](auto one, auto next) { return one >= next; }) == members.end();
}

std::string Agreement::fingerprint() const {
  std::string bytes;
  for (const std::uint64_t number : {static_cast<std::uint64_t>(setup_.self), std::uint64_t{started_}, promised_, accepted_ballot_,
                                     static_cast<std::uint64_t>(phase_), refused_for_, found_ballot_, std::uint64_t{hurries_},
                                     std::uint64_t{alone_}, std::uint64_t{outcome_.has_value()}, std::uint64_t{accepted_fork_.has_value()}})
    append(bytes, number);
  for (const auto& value : {accepted_, found_, proposed_, outcome_.value_or(Outcome{}), accepted_fork_.value_or(Outcome{})})
    append(bytes, value);
  ranks_.append_to(bytes);
  for (const auto& message : early_) {
    bytes.push_back(message ? '1' : '0');
    if (message) bytes += wire::encode_control(to_control(*message));
  }
  for (const Send& send : sends_) bytes += wire::encode_control(to_control(send.message));
  return bytes;
}

}  // namespace ringlet
