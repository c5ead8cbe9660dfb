#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <unordered_set>

#include "sim/sim_random.hpp"
#include "tests/core/agreement_world.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Visits every state that a world can reach, depth first. It stops at the first state with which something is wrong.
class Exploration {
 public:
  std::string run(const AgreementWorld& world, bool promptly = false) {
    promptly_ = promptly;
    visit(world);
    return wrong_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  void visit(const AgreementWorld& world) {
    if (!seen_.insert(world.hash()).second) return;
    bool quiet = true;
    for (const Move& move : world.moves()) {
      quiet = quiet && move.fault;
      AgreementWorld next = world;
      wrong_ = next.make(move);
      if (wrong_.empty()) visit(next);
      if (wrong_.empty()) continue;
      wrong_ = text_of(move) + wrong_;
      return;
    }
    if (!quiet) return;
    wrong_ = world.check_progress(false);
    if (!wrong_.empty()) return;
    AgreementWorld proved = world;
    proved.prove_all();
    wrong_ = proved.settle();
    if (wrong_.empty()) wrong_ = proved.check_progress(promptly_);
  }

  static std::string text_of(const Move& move) {
    static const char* const kNames[] = {"start", "receive", "lose", "prove_dead", "stop_waiting", "take_over", "stand_alone"};
    if (move.kind == Move::Kind::crash) return "crash " + std::to_string(move.rank) + "; ";
    return std::string(kNames[static_cast<int>(move.event)]) + " " + std::to_string(move.rank) + " " + std::to_string(move.peer) + "; ";
  }

  std::unordered_set<std::uint64_t> seen_;
  std::string wrong_;
  bool promptly_ = false;
};

}  // namespace

TEST_CASE("explore", "[.explore]") {
  const auto number = [](const char* name) {
    const char* t = std::getenv(name);
    return t ? std::atoi(t) : 0;
  };
  AgreementTable table;
  AgreementWorld world(table, number("N"), number("G"), {number("C"), number("S"), number("T"), number("I"), number("F"), number("P") != 0},
                       static_cast<BrokenRule>(number("B")));
  if (number("STARTED")) world.start_all();
  Exploration exploration;
  const auto begin = std::chrono::steady_clock::now();
  const auto wrong = exploration.run(world, number("PROMPT") != 0);
  std::printf("%zu states, %.2f s %s\n", exploration.states(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), wrong.c_str());
}
