#include "tests/core/sim_growth.hpp"

#include <utility>

namespace ringlet::test {

namespace {

constexpr Duration kLook = Duration::milliseconds(1);
constexpr Duration kFormingLimit = Duration::seconds(10);
// As NativeWorld::end_meeting().
constexpr Duration kStopPause = Duration::milliseconds(5);
constexpr int kStopTries = 200;

}  // namespace

void SimTown::leave(std::unique_ptr<Epochs> epochs) {
  epochs->close([] {});
  old_epochs.push_back(std::move(epochs));
}

EpochsOptions SimTown::epochs_options(int process, std::vector<int> members, std::uint64_t lineage) {
  EpochsOptions options;
  options.on_split = on_split;
  options.lineage = lineage;
  options.look_for_proof = [this, process, members = std::move(members)](int other, std::function<void(bool)> done) {
    node(process).loop().after(
        kLook, [this, found = members[static_cast<std::size_t>(other)], done = std::move(done)] { done(refusing.contains(found)); });
  };
  return spoil ? spoil(std::move(options)) : options;
}

SimDoor::SimDoor(SimTown& town, int process)
    : incoming_(town.node(process).loop(), town.new_authenticator()), knocks_(town.node(process).loop(), {}, {}) {
  incoming_.set_on_link([this](std::unique_ptr<Link> link) { knocks_.receive(std::move(link)); });
  listener_ = std::move(town.node(process).network().listen(town.door(process), incoming_.acceptor())).value();
}

SimGrowth::SimGrowth(SimTown& town, int process, const WorldOptions& next, const Address& coordinator, std::uint64_t lineage,
                     std::function<void()> on_over)
    : town_(town),
      process_(process),
      node_(town.node(process)),
      lineage_(lineage),
      coordinator_(coordinator),
      on_over_(std::move(on_over)),
      incoming_(node_.loop(), town.new_authenticator()),
      world_(std::make_unique<World>(node_.loop(), next)),
      first_(world_.get()) {
  // All ranks that meet are in this epoch, whichever it is.
  for (int rank = 0; rank < next.size; ++rank) world_->hear(rank);
  MeetingOptions meeting;
  meeting.coordinator = coordinator;
  meeting.timeout = kFormingLimit;
  meeting.world_id = 1000 + town.authenticators.size();
  meeting.coordinator_listens = next.rank != 0;
  meeting.door = town.door(process);
  meeting.on_listening = [this, rank = next.rank](std::uint16_t port) {
    port_ = port;
    if (rank == 0) coordinator_.port = port;
  };
  meeting_ = std::make_unique<Meeting>(node_.loop(), node_.network(), town.authenticators.back(), &incoming_, *world_, std::move(meeting));
  meeting_->start(guard_.wrap([this](const Status& status) { on_met(status); }));
  auto& members = town.met_at[to_string(coordinator_)];
  members.resize(static_cast<std::size_t>(next.size), -1);
  members[static_cast<std::size_t>(next.rank)] = process;
}

SimGrowth::~SimGrowth() {
  meeting_.reset();
  if (epochs_) town_.leave(std::move(epochs_));
  if (!world_) return;
  world_->close([] {});
  town_.old_worlds.push_back(std::move(world_));
}

void SimGrowth::on_met(const Status& status) {
  meeting_.reset();
  if (status.ok()) {
    World& world = *world_;
    epochs_ = std::make_unique<Epochs>(node_.loop(), std::move(world_), town_.epochs_options(process_, members(), lineage_));
    world.set_failure_handler(guard_.wrap([this](const Status&) { progress_.fail(); }));
    world.failure().ok() ? progress_.met() : progress_.fail();
  } else {
    progress_.fail();
  }
  if (on_over_) on_over_();
}

void SimGrowth::stop(const Status& why) {
  if (!meeting_ || state() != GrowthState::forming) return;
  // The others learn why over the link with rank 0, so this rank waits a moment until it has one.
  if (world_->options().rank == 0 || world_->has_session(0) || ++stop_tries_ > kStopTries) return world_->fail(why);
  node_.loop().after(kStopPause, guard_.wrap([this, why] { stop(why); }));
}

}  // namespace ringlet::test
