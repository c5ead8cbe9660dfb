#include "core/rendezvous/coordinator.hpp"

#include <utility>

#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

Coordinator::Coordinator(EventLoop& loop, World& world, LinkTable& links, CoordinatorOptions options, std::function<void()> on_changed)
    : world_(world), links_(links), options_(std::move(options)), members_(static_cast<std::size_t>(world.options().size)) {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) members_[rank].rank = static_cast<std::uint32_t>(rank);
  for (const wire::Member& member : options_.known) add(member);
  if (world_.options().guests > 0)
    seats_ = std::make_unique<Seats>(loop, world_.options(), loop.now() + options_.timeout, std::move(on_changed));
}

void Coordinator::add(wire::Member member) {
  const std::size_t rank = member.rank;
  members_[rank] = std::move(member);
}

Status Coordinator::seat(std::unique_ptr<Session>& session, const std::string& name) {
  const int guests = world_.options().guests;
  if (guests == 0) return {Errc::invalid_argument, "this group takes no guests; start its ranks with RINGLET_GUESTS"};
  if (!seats_ || !seats_->sit(session, name))
    return {Errc::invalid_argument, "all seats for guests are taken: the group takes " + std::to_string(guests)};
  return {};
}

int Coordinator::ranks_here() const {
  const int natives = world_.options().natives();
  return natives - static_cast<int>(links_.missing(natives).size()) + guests_here();
}

void Coordinator::update() {
  if (seats_) {
    seats_->tell(ranks_here());
    if (options_.on_guests) options_.on_guests(seats_->names());
  }
  const WorldOptions& own = world_.options();
  if (complete_ || ranks_here() < own.size) return;
  complete_ = true;
  if (seats_) turn_guests_into_ranks();
  const wire::Roster roster = make_roster();
  if (options_.natives_join && is_worth_a_race(roster.members.front()))
    for (int peer = 1; peer < own.natives(); ++peer) links_.expect_another(peer);
  for (int peer = 1; peer < own.size; ++peer)
    if (options_.natives_join || own.is_guest(peer)) world_.send_control(peer, roster);
}

void Coordinator::turn_guests_into_ranks() {
  int rank = world_.options().natives();
  for (Seats::Guest& guest : seats_->release()) {
    world_.set_rank_name(rank, guest.name);
    links_.confirm(rank);
    world_.adopt(std::move(guest.session), rank++);
  }
  seats_.reset();
}

wire::Roster Coordinator::make_roster() const {
  wire::Roster roster{options_.world_id, members_};
  for (wire::Member& member : roster.members) member.name = world_.rank_name(static_cast<int>(member.rank));
  return roster;
}

void Coordinator::reject_guests(const Status& reason, ClosingSessions& closing) {
  if (!seats_) return;
  for (Seats::Guest& guest : seats_->release())
    if (guest.session) closing.reject(std::move(guest.session), reason);
  seats_.reset();
}

}  // namespace ringlet
