#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/agreement_table.hpp"

namespace ringlet::test {

/// A rule that a world breaks on purpose, to show that the checks notice.
enum class BrokenRule : std::uint8_t {
  none,
  majority_of_living,      // a majority of the voters that are not proved dead may decide
  no_acceptances,          // a leader decides as soon as it has proposed
  not_all_acceptances,     // a leader does not wait for the highest member
  accepted_value_ignored,  // a leader proposes a value of its own
  promise_backwards,       // a rank forgets a promise when a lower ballot asks
  silence_is_proof,        // a lost rank is taken for dead
  dead_may_be_heard,       // proofs count although messages of the dead are still under way
  guests_believed,         // a voter learns the outcome from a guest
  no_patience,             // a leader never waits for reports
  decision_not_told,       // a rank that decides tells nobody
  one_lineage,             // all that stand alone are of one lineage
};

/// What may go wrong in a world, and how often.
struct Faults {
  int crashes = 0;
  int suspicions = 0;  // links that break between living ranks
  int take_overs = 0;
  int impatience = 0;  // stop_waiting_for_reports()
  int forks = 0;       // stand_alone()
  bool proofs = true;
};

struct Move {
  enum class Kind : std::uint8_t { event, crash };
  Kind kind = Kind::event;
  Event event = Event::start;
  int rank = 0, peer = 0;
  bool fault = false;  // needs something to go wrong or a timer; a world without any other move is quiet
};

/// The ranks of an epoch that has ended, and the messages between them. A value type of numbers in an AgreementTable.
class AgreementWorld {
 public:
  static constexpr int kMaxRanks = 9;
  static constexpr std::uint64_t kLineage = 77;

  AgreementWorld(AgreementTable& table, int size, int guests, Faults faults, BrokenRule broken = BrokenRule::none);

  std::vector<Move> moves() const;
  /// Returns what is wrong with the world afterwards, or "".
  std::string make(const Move& move);
  /// Makes all moves that are no faults, in a fixed order.
  std::string settle();
  /// Checks of a quiet world that all decide as soon as timers fire, if they may. `promptly`: also without timers.
  std::string check_progress(bool promptly) const;
  void start_all();
  void prove_all();
  /// Lets the timers of all ranks fire until nothing changes any more: take_over() of the lowest rank first.
  std::string run_timers();

  std::uint64_t hash() const;
  int size() const { return size_; }
  bool alive(int rank) const { return (crashed_ >> rank & 1U) == 0; }
  const Agreement& at(int rank) const { return table_->agreement(agreements_[static_cast<std::size_t>(rank)]); }
  bool votes(int rank) const { return rank < size_ - guests_; }

 private:
  using Id = AgreementTable::Id;

  std::string receive(int rank, int from);
  std::string step(int rank, Event event, int peer = 0, Id message = 0);
  std::string step_once(int rank, Event event, int peer, Id message);
  std::string break_rule(int rank);
  Id tamper_received(Id message) const;
  Id tamper_sent(Id message, Event event, Id cause) const;
  std::string check_outcome(int rank, bool led);
  std::string check_all_accepted(int rank) const;
  void crash(int rank);
  const AgreementTable::View& view(int rank) const { return table_->view(agreements_[static_cast<std::size_t>(rank)]); }
  bool hears(int rank, int peer) const { return (view(rank).hears >> peer & 1U) != 0; }
  bool linked(int one, int other) const { return hears(one, other) && hears(other, one); }
  bool decided(int rank) const { return view(rank).decided; }
  bool deaf(int rank) const { return decided(rank) && votes(rank); }
  bool proved(int rank, int peer) const { return !hears(rank, peer) && (view(rank).unproved >> peer & 1U) == 0; }
  bool may_decide(int leader) const;
  Agreement::Outcome outcome_of(int rank) const;
  Id& queue(int from, int to) { return queues_[static_cast<std::size_t>(from * kMaxRanks + to)]; }
  Id queue(int from, int to) const { return queues_[static_cast<std::size_t>(from * kMaxRanks + to)]; }

  AgreementTable* table_;
  int size_, guests_;
  Faults faults_;
  BrokenRule broken_;
  std::uint32_t crashed_ = 0, started_ = 0;
  std::uint32_t suspected_ = 0;  // ranks at either end of a link that broke
  bool impatient_ = false;
  std::array<Id, kMaxRanks> agreements_{};
  std::array<Id, kMaxRanks * kMaxRanks> queues_{};
};

}  // namespace ringlet::test
