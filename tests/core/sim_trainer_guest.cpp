#include <utility>

#include "core/engine/requests.hpp"
#include "tests/core/sim_trainer.hpp"

// How a simulated guest, as a browser is one, comes into a training, and comes again when its world has ended.
namespace ringlet::test {

namespace {

constexpr Duration kSeatTimeout = Duration::seconds(1), kPauseOfGuest = Duration::milliseconds(50);

}  // namespace

void SimTrainer::come() {
  GuestEntryOptions options;
  // It does not know who is in the group: who is not lets it go, and it tries the next one.
  options.coordinator = town_.door(static_cast<int>(tries_++) % town_.processes);
  options.name = "guest " + std::to_string(process_);
  options.timeout = kSeatTimeout;
  entry_ = std::make_unique<GuestEntry>(loop_, town_.node(process_).network(), town_.authenticator(process_), std::move(options),
                                        [this](Result<GuestEntry::Entry>& entry) {
                                          if (!entry.ok()) return come_again();
                                          sit_down(entry.value());
                                        });
}

void SimTrainer::sit_down(GuestEntry::Entry& entry) {
  WorldOptions own = sim_training_options();
  // It learns these from the other ranks.
  own.elastic = false;
  own.limits = {};
  guest_world_ = std::make_unique<World>(loop_, entry.world_options(own));
  guest_world_->adopt(std::move(entry.session), 0);
  MeetingOptions meeting;
  meeting.timeout = entry.wait();
  meeting.coordinator = entry.coordinator;
  meeting.name = "guest " + std::to_string(process_);
  const auto met = town_.met_at.find(to_string(entry.coordinator));
  if (met == town_.met_at.end()) return come_again();
  if (entry.epoch != met->second.epoch || entry.lineage != met->second.lineage) wrong_ = "I1: a guest is told of another epoch";
  met->second.members[static_cast<std::size_t>(guest_world_->options().rank)] = process_;
  guest_meeting_ = std::make_unique<Meeting>(loop_, town_.node(process_).network(), town_.authenticator(process_), nullptr, *guest_world_,
                                             std::move(meeting));
  guest_meeting_->start(guard_.wrap([this, met](const Status& status) {
    loop_.defer(guard_.wrap([this, met, status] {
      guest_meeting_.reset();
      status.ok() ? enter_as_guest(met->second) : come_again();
    }));
  }));
}

void SimTrainer::enter_as_guest(const SimTown::Met& met) {
  world_ = guest_world_.get();
  epoch_ = {met.lineage, met.epoch, to_string(met.coordinator)};
  members_of_[epoch_] = met.members;
  start_entry([this](const Status& status) {
    if (!status.ok()) return come_again();
    entry_.reset();
    waits_ = false;
    settle_state();
  });
}

/// Its world has ended, or it has not got into one.
void SimTrainer::come_again() {
  if (std::exchange(comes_again_, true)) return;
  waits_ = true;
  is_settled_ = false;
  loop_.defer(guard_.wrap([this] {
    guest_meeting_.reset();
    entry_.reset();
    world_ = nullptr;
    if (guest_world_) town_.close(std::move(guest_world_));
    loop_.after(kPauseOfGuest, guard_.wrap([this] {
      comes_again_ = false;
      come();
    }));
  }));
}

}  // namespace ringlet::test
