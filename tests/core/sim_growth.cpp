#include "tests/core/sim_growth.hpp"

#include <algorithm>
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
  Closing& one = closing.emplace_back(Closing{nullptr, std::move(epochs)});
  one.epochs->close([is_closed = one.is_closed] { *is_closed = true; });
}

void SimTown::close(std::unique_ptr<World> world) {
  Closing& one = closing.emplace_back(Closing{std::move(world), nullptr});
  one.world->close([is_closed = one.is_closed] { *is_closed = true; });
}

void SimTown::forget_old() {
  closing.erase(std::remove_if(closing.begin(), closing.end(), [](const Closing& one) { return *one.is_closed; }), closing.end());
  met_at.clear();
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
    : incoming_(town.node(process).loop(), town.authenticator(process)), knocks_(town.node(process).loop(), {}, {}) {
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
      incoming_(std::make_shared<IncomingLinks>(node_.loop(), town.authenticator(process))),
      world_(std::make_unique<World>(node_.loop(), next)),
      first_(world_.get()) {
  // All ranks that meet are in this epoch, whichever it is.
  for (int rank = 0; rank < next.size; ++rank) world_->hear(rank);
  MeetingOptions meeting;
  meeting.coordinator = coordinator;
  meeting.timeout = kFormingLimit;
  meeting.world_id = 1000 + ++town.meetings;
  meeting.coordinator_listens = next.rank != 0;
  meeting.door = town.door(process);
  meeting.on_listening = [this, rank = next.rank](std::uint16_t port) {
    port_ = port;
    if (rank == 0) coordinator_.port = port;
  };
  meeting_ =
      std::make_unique<Meeting>(node_.loop(), node_.network(), town.authenticator(process), incoming_.get(), *world_, std::move(meeting));
  meeting_->start(guard_.wrap([this](const Status& status) { on_met(status); }));
  SimTown::Met& met = town.met_at[to_string(coordinator_)];
  met.coordinator = coordinator_;
  met.lineage = lineage;
  met.epoch = next.epoch;
  met.members.resize(static_cast<std::size_t>(next.size), -1);
  met.members[static_cast<std::size_t>(next.rank)] = process;
}

SimGrowth::~SimGrowth() {
  meeting_.reset();
  if (epochs_) town_.leave(std::move(epochs_));
  if (!world_) return;
  town_.close(std::move(world_));
}

void SimGrowth::on_met(const Status& status) {
  meeting_.reset();
  if (status.ok()) {
    World& world = *world_;
    EpochsOptions options = town_.epochs_options(process_, members(), lineage_);
    // The world's guests are relayed for as long as it lives.
    options.prepare = [incoming = incoming_, prepare = std::move(options.prepare)](World& next) {
      if (prepare) prepare(next);
    };
    epochs_ = std::make_unique<Epochs>(node_.loop(), std::move(world_), std::move(options));
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
