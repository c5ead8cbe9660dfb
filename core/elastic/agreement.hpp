#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/elastic/survivors.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

using AgreementMessage = std::variant<wire::Query, wire::Report, wire::Proposal, wire::Acceptance, wire::Decision>;

/// The epoch whose end the message is about.
std::uint32_t epoch_of(const AgreementMessage& message);
/// Nothing if it is another message.
std::optional<AgreementMessage> of_agreement(const wire::ControlMessage& message);

/// One rank's part in the agreement of an epoch's survivors on the members of the next epoch: Paxos for one value, in which proofs of death
/// may stand in for a majority. A value type without clock and sockets: the caller carries its messages and tells it what has happened.
/// Ranks and links are those of the epoch that has ended; each link keeps the order of its messages.
class Agreement {
 public:
  struct Setup {
    int size = 1;
    int self = 0;
    std::uint32_t epoch = 0;
    std::uint64_t lineage = 0;
    std::vector<bool> votes{};  // by rank; guests do not vote
    friend bool operator==(const Setup&, const Setup&) = default;
  };
  struct Send {
    int to = 0;
    AgreementMessage message;
    friend bool operator==(const Send&, const Send&) = default;
  };
  struct Outcome {
    std::vector<std::uint32_t> members{};  // ascending; a rank that is missing has been evicted
    std::uint64_t lineage = 0;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  explicit Agreement(Setup setup);

  /// The epoch has ended at this rank. To be called once; before it only receive(), lose() and prove_dead() may be called.
  void start();
  /// The caller sorts out messages of other epochs. A message that makes no sense is ignored.
  void receive(int from, const AgreementMessage& message);
  /// The link with `peer` has broken, or `peer` was silent for too long. Nothing is sent to it or heard from it any more.
  void lose(int peer);
  /// The process of `peer` has certainly ended. This implies lose().
  void prove_dead(int peer);
  /// A timer of the caller: ranks that have not reported to this rank's ballot count as lost until they do, and of two ranks that do not
  /// hear each other one is left out. Before, the leader waits, since a broken link is often the first sign that one of the two dies.
  void stop_waiting_for_reports();
  /// A timer of the caller: no decision has come in time, so this rank begins a ballot that is higher than all it has seen.
  void take_over();
  /// For a rank that leads and lacks a quorum: it decides without one, together with the ranks that answer it, in a new lineage.
  void stand_alone();

  /// Returns the messages that are to be sent now, in this order.
  std::vector<Send> take_sends();
  const std::optional<Outcome>& outcome() const { return outcome_; }
  bool leads() const { return phase_ != Phase::following; }
  /// This rank leads and all for which it waits have answered, but they may not decide.
  bool lacks_quorum() const;
  /// The lost voters that are not proved dead. A proof for each of them lets the others decide.
  std::vector<int> unproved() const { return ranks_.unproved(); }
  /// Also false after `peer` has left for a lineage without this rank.
  bool hears(int peer) const { return ranks_.exists(peer) && !ranks_.at(peer).lost; }
  bool is_dead(int peer) const { return ranks_.at(peer).dead; }

  friend bool operator==(const Agreement&, const Agreement&) = default;
  /// All of the state as bytes, by which a test recognises a state that it has seen.
  std::string fingerprint() const;

 private:
  enum class Phase : std::uint8_t { following, asking, proposing };

  void on_message(int from, const wire::Query& query);
  void on_message(int from, const wire::Report& report);
  void on_message(int from, const wire::Proposal& proposal);
  void on_message(int from, const wire::Acceptance& acceptance);
  void on_message(int from, const wire::Decision& decision);

  void begin_ballot();
  void begin_ballot_if_first();
  void stop_leading();
  void proceed();
  void propose_if_possible();
  void propose(Outcome value);
  void send_proposal(int to);
  void decide_if_accepted();
  void learn(const Outcome& value);
  void note_loss(int peer);
  void note_death(int peer);
  void on_knowledge_changed();
  void report(int to, std::uint64_t ballot);
  void send(int to, AgreementMessage message);

  bool is_first() const { return self_votes() && ranks_.first() == setup_.self; }
  bool has_waited_enough() const;
  Outcome fork(std::vector<std::uint32_t> members) const;
  bool is_fork(const Outcome& value) const { return value.lineage != setup_.lineage; }
  bool is_ballot(std::uint64_t ballot) const;
  bool is_member_list(const std::vector<std::uint32_t>& members) const;
  bool self_votes() const { return ranks_.self().votes; }

  Setup setup_;
  Survivors ranks_;
  std::vector<std::optional<AgreementMessage>> early_;  // by rank, the last message that came before start()
  std::vector<Send> sends_;
  std::optional<Outcome> outcome_;
  bool started_ = false;

  // What this rank has promised and accepted. A fork is kept apart, since it is none of the values among which ballots choose.
  std::uint64_t promised_ = 0;
  std::uint64_t accepted_ballot_ = 0;
  Outcome accepted_;
  std::optional<Outcome> accepted_fork_;

  // Of this rank's own ballot.
  Phase phase_ = Phase::following;
  std::uint64_t refused_for_ = 0;  // the highest ballot for which this rank was refused
  std::uint64_t found_ballot_ = 0;
  Outcome found_;  // the accepted value of the highest ballot among the reports
  Outcome proposed_;
  bool hurries_ = false;  // stop_waiting_for_reports() was called
  bool alone_ = false;    // stand_alone() was called
};

}  // namespace ringlet
