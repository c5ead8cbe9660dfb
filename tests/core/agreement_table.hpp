#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/elastic/agreement.hpp"

namespace ringlet::test {

/// What may happen to one rank.
enum class Event : std::uint8_t { start, receive, lose, prove_dead, stop_waiting, take_over, stand_alone };

/// Numbers the states of ranks, the messages and the queues of messages that occur, and remembers what follows from each: a state of a
/// whole world is then a few numbers, and each rank's step is computed once.
class AgreementTable {
 public:
  using Id = std::uint32_t;
  struct Sent {
    int to = 0;
    Id message = 0;
  };
  struct Step {
    Id next = 0;
    std::vector<Sent> sends{};
  };
  /// What a rank shows of itself; sets of ranks are bits.
  struct View {
    bool decided = false, leads = false, lacks_quorum = false;
    std::uint32_t hears = 0, unproved = 0;
  };
  struct Popped {
    Id message = 0, rest = 0;
  };

  Id add(const Agreement& agreement);
  Id add(const AgreementMessage& message);
  const Agreement& agreement(Id id) const { return agreements_[id]; }
  const View& view(Id id) const { return views_[id]; }
  const AgreementMessage& message(Id id) const { return messages_[id]; }

  /// The result stays valid.
  const Step& step(Id agreement, Event event, int peer = 0, Id message = 0);

  /// Queue 0 is empty.
  Id push(Id queue, Id message);
  Popped pop(Id queue) const { return {queues_[queue].front(), rests_[queue]}; }

 private:
  Id add_queue(std::vector<Id> queue);

  std::deque<Agreement> agreements_;  // deques, since references to their elements stay valid
  std::vector<View> views_;
  std::unordered_map<std::string, Id> agreement_ids_;
  std::deque<AgreementMessage> messages_;
  std::unordered_map<std::string, Id> message_ids_;
  std::unordered_map<std::uint64_t, Step> steps_;
  std::vector<std::vector<Id>> queues_{{}};
  std::vector<Id> rests_{0};
  std::unordered_map<std::string, Id> queue_ids_{{"", 0}};
  std::unordered_map<std::uint64_t, Id> pushes_;
};

}  // namespace ringlet::test
