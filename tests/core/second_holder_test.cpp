// What a second holder of sharded rows costs on the wire.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// One rank's memory of a step of FSDP: gradients of all, its part of their sum, that of the rank before it, and the parameters.
struct Sharded {
  std::vector<float> gradients, reduced, before, parameters;
};

class ShardedRanks {
 public:
  ShardedRanks(int size, std::int64_t rows) : counts_(static_cast<std::size_t>(size), rows), sim_({.size = size, .seed = 3}) {
    sim_.meet();
    const auto part = static_cast<std::size_t>(rows);
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back({std::vector<float>(part * counts_.size()), std::vector<float>(part), std::vector<float>(part),
                        std::vector<float>(part * counts_.size(), -1)});
      std::iota(ranks_.back().gradients.begin(), ranks_.back().gradients.end(), static_cast<float>(rank));
    }
  }

  void reduce() {
    for (int rank = 0; rank < size(); ++rank)
      sim_.start(rank, 0, make_reduce_scatter_v(ReduceOp::sum, at(rank).gradients, at(rank).reduced, counts_, sim_.options(rank)));
    REQUIRE(sim_.run_until_done());
  }
  void send_to_second_holders() {
    for (int rank = 0; rank < size(); ++rank) {
      sim_.send(rank, 1, make_send(at(rank).reduced, (rank + 1) % size(), sim_.options(rank)));
      sim_.receive(rank, 1, make_receive(at(rank).before, (rank + size() - 1) % size(), sim_.options(rank)));
    }
    REQUIRE(sim_.run_until_done());
  }
  /// Each rank's new parameters are twice the gradients' sum.
  void gather(bool of_rest) {
    for (int rank = 0; rank < size(); ++rank) {
      const auto own = part_of(rank);
      update(at(rank).reduced, own);
      if (of_rest) update(at(rank).before, std::span(at(rank).parameters).subspan(first((rank + size() - 1) % size()), own.size()));
      const auto make = of_rest ? make_all_gather_of_rest : make_all_gather_v;
      sim_.start(rank, 0, make(own, at(rank).parameters, counts_, sim_.options(rank)));
    }
    REQUIRE(sim_.run_until_done());
    for (Sharded& rank : ranks_) CHECK(rank.parameters == ranks_.front().parameters);
  }
  std::uint64_t bytes_sent() {
    std::uint64_t bytes = 0;
    for (int rank = 0; rank < size(); ++rank) bytes += sim_.world(rank).state().bytes_sent;
    return bytes;
  }
  const std::vector<float>& parameters() { return ranks_.front().parameters; }
  void close() { sim_.close_cleanly(); }

 private:
  int size() const { return static_cast<int>(counts_.size()); }
  Sharded& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::size_t first(int rank) const { return static_cast<std::size_t>(rank) * static_cast<std::size_t>(counts_.front()); }
  std::span<float> part_of(int rank) { return std::span(at(rank).parameters).subspan(first(rank), at(rank).reduced.size()); }
  static void update(const std::vector<float>& sums, std::span<float> parameters) {
    for (std::size_t i = 0; i < sums.size(); ++i) parameters[i] = 2 * sums[i];
  }

  std::vector<std::int64_t> counts_;
  SimGroup sim_;
  std::vector<Sharded> ranks_;
};

}  // namespace

TEST_CASE("a second holder of each row costs no byte, directly and by the ring") {
  for (const int size : {3, 4, 5})
    for (const std::int64_t rows : {8'000, 100'000}) {
      CAPTURE(size, rows);
      ShardedRanks plain(size, rows);
      plain.reduce();
      plain.gather(false);
      ShardedRanks doubled(size, rows);
      doubled.reduce();
      doubled.send_to_second_holders();
      const std::uint64_t before_gather = doubled.bytes_sent();
      doubled.gather(true);
      CHECK(doubled.parameters() == plain.parameters());
      // Heads of frames, calls and credits are a part in a hundred at most.
      const auto expected = static_cast<double>(plain.bytes_sent());
      CHECK(static_cast<double>(doubled.bytes_sent()) < 1.01 * expected);
      CHECK(static_cast<double>(doubled.bytes_sent()) > 0.99 * expected);
      const double part = 4.0 * static_cast<double>(rows);
      CHECK(static_cast<double>(doubled.bytes_sent() - before_gather) == Approx(size * (size - 2) * part).epsilon(0.01));
      plain.close();
      doubled.close();
    }
}
