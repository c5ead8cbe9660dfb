#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/trace.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Keeps what a rank records of messages.
class KeptTrace final : public Trace {
 public:
  explicit KeptTrace(EventLoop& loop) : loop_(loop) {}

  Instant now() const override { return loop_.now() + Duration::seconds(100); }
  std::uint32_t add_track(const std::string& name) override {
    return tracks.try_emplace(name, static_cast<std::uint32_t>(tracks.size() + 1)).first->second;
  }
  void record(const TraceRecord& record) override {
    if (record.category == kMessageCategory) messages.push_back(record);
  }
  void record(const ClockReading&) override {}

  std::map<std::string, std::uint32_t> tracks;
  std::vector<TraceRecord> messages;

 private:
  EventLoop& loop_;
};

struct TracedRanks {
  explicit TracedRanks(int size) : sim(setup_of(size)) {
    for (int rank = 0; rank < size; ++rank) {
      traces.emplace_back(sim.node(rank).loop());
      WorldOptions options = sim.options(rank);
      options.session.trace = &traces.back();
      sim.make_world(rank, options);
    }
    sim.meet();
  }
  static GroupSetup setup_of(int size) {
    GroupSetup setup;
    setup.size = size;
    return setup;
  }
  const std::vector<TraceRecord>& messages(int rank) { return traces[static_cast<std::size_t>(rank)].messages; }

  std::deque<KeptTrace> traces;  // outlive the worlds
  SimGroup sim;
};

}  // namespace

TEST_CASE("messages are recorded on both sides, from the call to the end") {
  TracedRanks ranks(3);
  std::vector<float> values(1000, 1.0F), place(1000), other(1000);
  const Instant posted = ranks.traces[1].now();
  ranks.sim.receive(1, 2, make_receive(place, 0, ranks.sim.options(1)));
  ranks.sim.sim().run_for(Duration::milliseconds(50));
  ranks.sim.send(0, 2, make_send(values, 1, ranks.sim.options(0)));
  REQUIRE(ranks.sim.run_until_done());

  REQUIRE(ranks.messages(1).size() == 1);
  const TraceRecord& received = ranks.messages(1).front();
  CHECK(received.name == "recv");
  CHECK(received.begin == posted);
  CHECK(received.end - received.begin >= Duration::milliseconds(50));
  CHECK(received.peer == 0);
  CHECK(received.bytes == 4000);
  CHECK(received.dtype == "f32");
  CHECK(received.number == 0);
  CHECK(received.overlaps);
  CHECK_FALSE(received.failed);
  CHECK(ranks.traces[1].tracks.at("messages received on stream 2") == received.track);
  REQUIRE(ranks.messages(0).size() == 1);
  CHECK(ranks.messages(0).front().name == "send");
  CHECK(ranks.traces[0].tracks.at("messages sent on stream 2") == ranks.messages(0).front().track);
  CHECK(ranks.messages(0).front().peer == 1);
  CHECK(ranks.messages(0).front().begin >= posted + Duration::milliseconds(50));

  // Of a receive from any rank the peer is the one that has sent.
  int source = -1;
  const Instant asked = ranks.traces[1].now();
  ranks.sim.receive(1, 2, make_receive_any(other, source, ranks.sim.options(1)));
  ranks.sim.sim().run_for(Duration::milliseconds(20));
  ranks.sim.send(2, 2, make_send(values, 1, ranks.sim.options(2)));
  REQUIRE(ranks.sim.run_until_done());
  REQUIRE(ranks.messages(1).size() == 2);
  CHECK(ranks.messages(1).back().peer == 2);
  CHECK(ranks.messages(1).back().begin == asked);
  CHECK_FALSE(ranks.messages(1).back().failed);

  // A refused message has failed on both sides.
  ranks.sim.receive(1, 2, make_receive(std::span(place).first(7), 0, ranks.sim.options(1)));
  ranks.sim.send(0, 2, make_send(values, 1, ranks.sim.options(0)));
  REQUIRE(ranks.sim.run_until_done());
  CHECK(ranks.messages(1).back().failed);
  CHECK(ranks.messages(1).back().bytes == 28);
  CHECK(ranks.messages(0).back().failed);
  ranks.sim.close_cleanly();
}

TEST_CASE("messages of one stream have their number on both sides, and a track for each direction") {
  TracedRanks ranks(2);
  std::vector<float> values(1000, 1.0F), place(1000);
  constexpr std::uint64_t kMessages = 3;
  for (std::uint64_t i = 0; i < kMessages; ++i)
    for (int rank = 0; rank < 2; ++rank) {
      ranks.sim.send(rank, 0, make_send(values, 1 - rank, ranks.sim.options(rank)));
      ranks.sim.receive(rank, 0, make_receive(place, 1 - rank, ranks.sim.options(rank)));
      REQUIRE((rank == 0 || ranks.sim.run_until_done()));
    }
  for (int rank = 0; rank < 2; ++rank) {
    std::map<std::uint32_t, std::vector<std::uint64_t>> numbers;
    for (const TraceRecord& record : ranks.messages(rank)) numbers[record.track].push_back(record.number);
    const auto& tracks = ranks.traces[static_cast<std::size_t>(rank)].tracks;
    CHECK(numbers.size() == 2);
    CHECK(numbers[tracks.at("messages sent on stream 0")] == std::vector<std::uint64_t>{0, 1, 2});
    CHECK(numbers[tracks.at("messages received on stream 0")] == std::vector<std::uint64_t>{0, 1, 2});
  }
  ranks.sim.close_cleanly();
}

TEST_CASE("messages that wait for a rank that dies are recorded as failed") {
  TracedRanks ranks(2);
  std::vector<float> values(1'000'000, 1.0F), place(10), other(10);
  int source = -1;
  ranks.sim.receive(0, 0, make_receive(place, 1, ranks.sim.options(0)));
  ranks.sim.receive(0, 1, make_receive_any(other, source, ranks.sim.options(0)));
  ranks.sim.send(0, 0, make_send(values, 1, ranks.sim.options(0)));
  ranks.sim.sim().run_for(Duration::milliseconds(50));
  CHECK(ranks.messages(0).empty());
  ranks.sim.destroy(1);
  REQUIRE(ranks.sim.run_until_done());

  std::vector<std::pair<std::string_view, int>> failed;
  for (const TraceRecord& record : ranks.messages(0)) {
    CHECK(record.failed);
    CHECK(record.end - record.begin >= Duration::milliseconds(50));
    failed.emplace_back(record.name, record.peer);
  }
  std::sort(failed.begin(), failed.end());
  CHECK(failed == std::vector<std::pair<std::string_view, int>>{{"recv", -1}, {"recv", 1}, {"send", 1}});
}

TEST_CASE("a message to a rank that has left is recorded as failed") {
  TracedRanks ranks(2);
  std::vector<float> values(10);
  ranks.sim.close(1);
  ranks.sim.sim().run_for(Duration::milliseconds(50));
  ranks.sim.send(0, 0, make_send(values, 1, ranks.sim.options(0)));
  REQUIRE(ranks.sim.run_until_done());
  REQUIRE(ranks.messages(0).size() == 1);
  CHECK(ranks.messages(0).front().failed);
}

TEST_CASE("the messages by which a group is created are not the program's") {
  TracedRanks ranks(2);
  std::vector<GroupEngine*> made(2);
  for (int rank = 0; rank < 2; ++rank)
    ranks.sim.start_create(ranks.sim.world(rank).group(), rank, {0, 1}, 0, made[static_cast<std::size_t>(rank)]);
  REQUIRE(ranks.sim.run_until_done());
  REQUIRE((made[0] != nullptr && made[1] != nullptr));
  std::vector<float> values(3, 1.0F), place(3);
  ranks.sim.send_in(*made[0], 0, 0, make_send(values, 1, made[0]->options()));
  ranks.sim.receive_in(*made[1], 1, 0, make_receive(place, 0, made[1]->options()));
  REQUIRE(ranks.sim.run_until_done());
  CHECK(ranks.messages(0).size() == 1);
  CHECK(ranks.messages(1).size() == 1);
}
