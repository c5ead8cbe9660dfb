#include "native/votes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using native::Votes;

namespace {

/// One rank, what it said in each call, and what it was told.
class Voter {
 public:
  void call(bool own) {
    number_ = votes_.tell()[0] + 1;
    said_[number_] = own;
    votes_.call(own);
    in_call_ = true;
  }
  void end_call(bool result) {
    votes_.set_result(result);
    take_answer();
  }
  void settle(const std::vector<Votes::Told>& told, std::uint32_t epoch) {
    votes_.settle(told, epoch);
    if (in_call_) take_answer();
  }
  Votes::Told tell() const { return votes_.tell(); }
  bool in_call() const { return in_call_; }
  bool says() const { return said_.at(number_); }
  const std::map<std::int64_t, bool>& said() const { return said_; }
  const std::map<std::int64_t, bool>& answers() const { return answers_; }

  bool gone = false;

 private:
  void take_answer() {
    answers_[number_] = votes_.answer();
    in_call_ = false;
  }

  Votes votes_;
  std::map<std::int64_t, bool> said_, answers_;
  std::int64_t number_ = 0;
  bool in_call_ = false;
};

}  // namespace

TEST_CASE("a call that begins between what a rank has told and what it learns is answered with no, and counts nowhere") {
  Votes votes;
  for (int call = 0; call < 64; ++call) {
    votes.call(true);
    votes.set_result(true);
  }
  const std::vector<Votes::Told> told{votes.tell(), votes.tell()};
  votes.call(true);
  votes.settle(told, 1);
  CHECK_FALSE(votes.answer());
  CHECK(votes.tell() == told[0]);
}

TEST_CASE("numbers that no rank can have told are refused") {
  const Votes::Told good = Votes().tell();
  CHECK(Votes::blame({&good, 1}) == -1);
  for (const std::int64_t calls : {std::int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX - 1}) {
    const std::vector<Votes::Told> told{good, {calls, 0, 1, 1}};
    CHECK(Votes::blame(told) == 1);
  }
}

TEST_CASE("all that are left are told the same of a call, wherever ranks were lost") {
  for (const auto seed : test::seeds(3000)) {
    CAPTURE(seed);
    SimRandom random(seed);
    std::deque<Voter> voters(2 + random.below(4));
    const auto living = [&] {
      std::vector<Voter*> all;
      for (Voter& voter : voters)
        if (!voter.gone) all.push_back(&voter);
      return all;
    };
    for (std::uint32_t epoch = 1; epoch < 8; ++epoch) {
      // Some calls end everywhere, the last one on some ranks, which may be in the next one when the epoch ends.
      for (auto calls = random.below(4); calls > 0; --calls) {
        for (Voter* voter : living()) voter->call(random.below(3) != 0);
        const auto all = living();
        const bool result = std::all_of(all.begin(), all.end(), [](const Voter* voter) { return voter->says(); });
        for (Voter* voter : all)
          if (calls > 1 || random.below(2) != 0) voter->end_call(result);
      }
      for (Voter* voter : living())
        if (!voter->in_call() && random.below(2) != 0) voter->call(random.below(3) != 0);
      // A rank may be lost, and then another one in the exchange, which then ends on some ranks only.
      for (bool ended_everywhere = false; !ended_everywhere; ++epoch) {
        if (living().size() > 1 && random.below(2) != 0) living()[random.below(living().size())]->gone = true;
        std::vector<Votes::Told> told;
        for (const Voter* voter : living()) told.push_back(voter->tell());
        ended_everywhere = random.below(3) != 0;
        for (Voter* voter : living()) {
          if (!ended_everywhere && random.below(2) != 0) continue;
          voter->settle(told, epoch);
          if (!ended_everywhere && random.below(2) != 0) voter->call(random.below(3) != 0);
        }
      }
      for (const Voter* voter : living()) {
        CHECK(voter->tell()[0] == living().front()->tell()[0]);
        CHECK_FALSE(voter->in_call());
      }
    }
    for (const Voter* one : living())
      for (const auto& [number, answer] : one->answers())
        for (const Voter* other : living()) {
          const auto same = other->answers().find(number);
          if (same != other->answers().end()) CHECK(same->second == answer);
          if (answer) CHECK((other->said().contains(number) && other->said().at(number)));
        }
  }
}
