// Tests of how ranks of a training get the state of others, among them guests.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/elastic/state_sync.hpp"
#include "tests/core/procedures.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

GroupSetup syncing_setup(int natives, int guests, std::uint64_t seed) {
  GroupSetup setup;
  setup.size = natives + guests;
  setup.world.guests = guests;
  setup.seed = seed;
  return setup;
}

/// A rank of a training before and after its state is made that of the others.
struct StateOwner {
  StateOwner(int begins_with, const Standing& has) : memory(2'500'000, static_cast<float>(begins_with)), standing(has) {
    for (std::size_t i = 0; i < memory.size(); i += 7) memory[i] += static_cast<float>(i);
  }

  std::shared_ptr<StateSync> make(ProcedureWorld& world, int rank) {
    // Several blocks, the first with gaps between its elements.
    const std::int64_t strides[]{2};
    const std::size_t half = memory.size() / 2;
    const TensorView gaps(memory.data(), DType::f32, Shape{static_cast<std::int64_t>(half / 2)}, strides);
    const TensorView dense(memory.data() + half, DType::f32, half);
    const Tree state{{"gaps", gaps}, {"dense", dense}, {"none", TensorView(nullptr, DType::i8, 0)}};
    sync = std::make_shared<StateSync>(world.engine(rank), world.agreements(rank), state, values, standing);
    return sync;
  }

  std::vector<float> memory;
  Standing standing;
  std::string values = "of step " + std::to_string(standing.step);
  std::shared_ptr<StateSync> sync;
};

/// Whether one of two has the state of the other, and what is not part of the state as it was.
bool has_state_of(const StateOwner& owner, const StateOwner& giver, const std::vector<float>& before) {
  const std::size_t half = owner.memory.size() / 2;
  for (std::size_t i = 0; i < owner.memory.size(); ++i) {
    const bool is_state = i >= half || i % 2 == 0;
    if (owner.memory[i] != (is_state ? giver.memory[i] : before[i])) return false;
  }
  return owner.sync->values() == giver.values && owner.sync->plan().step == giver.standing.step;
}

}  // namespace

TEST_CASE("all ranks get the state of the native ranks with the most steps, whatever guests say of theirs") {
  const auto seed = GENERATE(from_range(seeds(12)));
  SimRandom random(seed);
  const int natives = static_cast<int>(1 + random.below(3)), guests = static_cast<int>(random.below(4));
  CAPTURE(seed, natives, guests);
  ProcedureWorld world(syncing_setup(natives, guests, seed));
  std::vector<StateOwner> owners;
  // Ranks with the same number have the same state. A guest may be further than all others.
  for (int rank = 0; rank < natives + guests; ++rank) {
    const auto step = random.below(rank < natives ? 3 : 5);
    const bool lacks = rank != 0 && random.chance(300);
    owners.emplace_back(lacks ? 99 : static_cast<int>(step), Standing{lacks, step});
  }
  const StateOwner* best = &owners[0];
  for (int rank = 1; rank < natives; ++rank) {
    const StateOwner& other = owners[static_cast<std::size_t>(rank)];
    if (!other.standing.lacks && other.standing.step > best->standing.step) best = &other;
  }
  const StateOwner giver = *best;
  std::vector<std::vector<float>> before;
  for (const StateOwner& owner : owners) before.push_back(owner.memory);
  REQUIRE(world.run([&](int rank) { return owners[static_cast<std::size_t>(rank)].make(world, rank); }));
  REQUIRE(world.failure() == "");
  for (std::size_t rank = 0; rank < owners.size(); ++rank) {
    CAPTURE(rank);
    const StateOwner& owner = owners[rank];
    REQUIRE(has_state_of(owner, giver, before[rank]));
    REQUIRE(owner.sync->takes() == (owner.standing.lacks || owner.standing.step != giver.standing.step));
    for (const int from : owner.sync->plan().givers) REQUIRE(from < natives);
  }
}

TEST_CASE("ranks with other tensors are named, and nothing is overwritten") {
  ProcedureWorld world(syncing_setup(2, 2, 1));
  std::vector<std::vector<float>> memory{std::vector<float>(4, 0), std::vector<float>(4, 0), std::vector<float>(4, 1),
                                         std::vector<float>(5, 2)};
  REQUIRE(world.run([&](int rank) {
    const Tree state{{"model.weight", memory[static_cast<std::size_t>(rank)]}};
    return std::make_shared<StateSync>(world.engine(rank), world.agreements(rank), state, "", Standing{});
  }));
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank, world.status(rank)->text());
    REQUIRE(world.status(rank)->code() == Errc::mismatch);
    REQUIRE(world.status(rank)->rank() == 3);
    REQUIRE(world.status(rank)->text().find("model.weight") != std::string::npos);
  }
  REQUIRE(memory[2] == std::vector<float>(4, 1));
}

TEST_CASE("where only guests have a state, all native ranks lack it") {
  ProcedureWorld world(syncing_setup(2, 1, 1));
  std::vector<std::vector<float>> memory(3, std::vector<float>(4));
  REQUIRE(world.run([&](int rank) {
    const Tree state{{"weight", memory[static_cast<std::size_t>(rank)]}};
    return std::make_shared<StateSync>(world.engine(rank), world.agreements(rank), state, "", Standing{rank < 2, 7});
  }));
  for (int rank = 0; rank < 3; ++rank) REQUIRE(world.status(rank)->code() == Errc::peer_lost);
}
