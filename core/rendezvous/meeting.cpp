#include "core/rendezvous/meeting.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/rank_text.hpp"
#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

constexpr Duration kGrace = Duration::seconds(1);
constexpr std::size_t kMaxNameBytes = 256;

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

Meeting::Meeting(EventLoop& loop, Network& network, Authenticator& authenticator, Reception* reception, World& world,
                 MeetingOptions options)
    : loop_(loop),
      network_(network),
      reception_(reception),
      world_(world),
      dialler_(loop, network, authenticator, options.shortcut),
      options_(std::move(options)),
      joined_(static_cast<std::size_t>(world.options().size)),
      linked_(static_cast<std::size_t>(world.options().size)),
      opening_(loop, world, [this] { finish({}); }),
      alive_(std::make_shared<bool>(true)) {
  if (reception_ == nullptr) return;
  reception_->set_on_link([this](std::unique_ptr<Link> link) { on_stranger(std::move(link)); });
  reception_->relay_for(world_.options());
}

Meeting::~Meeting() {
  *alive_ = false;
  if (reception_ != nullptr) reception_->set_on_link(nullptr);
  if (deadline_timer_ != 0) loop_.cancel(deadline_timer_);
}

void Meeting::start(std::function<void(const Status&)> on_met) {
  on_met_ = std::move(on_met);
  world_.set_control_handler([this](int from, const wire::ControlMessage& message) { on_control(from, message); });
  world_.set_failure_handler([this, alive = alive_](const Status& status) {
    if (*alive) finish(status);
  });
  set_deadline(options_.timeout);
  linked_[static_cast<std::size_t>(rank())] = true;
  roster_known_ = !coordinates() || rank() == 0;
  if (is_guest()) return;  // rank 0 has its word, and will give it the roster
  if (rank() == 0 && world_.options().guests > 0)
    seats_ = std::make_unique<Seats>(loop_, world_.options(), loop_.now() + options_.timeout, [this] { tell_guests(); });
  if (Status status = listen(); !status.ok()) return world_.fail(status);
  begin_dialling();
}

// --- ranks ---

void Meeting::on_control(int from, const wire::ControlMessage& message) {
  const auto unexpected = [&] {
    world_.fail({Errc::protocol_error,
                 rank_text(static_cast<std::uint64_t>(from)) + " sent a message that does not belong here while the ranks met", from});
  };
  if (const auto* roster = std::get_if<wire::Roster>(&message)) {
    if (from != 0 || roster_known_) return unexpected();
    return on_roster(*roster);
  }
  if (const auto* seat = std::get_if<wire::Seat>(&message)) {
    if (from != 0 || roster_known_ || seat->present > seat->world_size) return unexpected();
    if (options_.on_present) options_.on_present(static_cast<int>(seat->present));
    return;
  }
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    if (static_cast<int>(welcome->rank) != from) {
      return world_.fail({Errc::mismatch,
                          "at the address of " + rank_text(static_cast<std::uint64_t>(from)) + " answers " + rank_text(welcome->rank) +
                              "; check the addresses",
                          from});
    }
    linked_[static_cast<std::size_t>(from)] = true;
    return open_if_linked();
  }
  if (!opening_.on_control(from, message)) unexpected();
}

void Meeting::on_roster(const wire::Roster& roster) {
  options_.world_id = roster.world_id;
  roster_known_ = true;
  linked_[0] = true;
  std::vector<std::vector<wire::Endpoint>> targets(static_cast<std::size_t>(natives()));
  if (is_guest()) targets[0] = {{options_.coordinator->host, options_.coordinator->port}};
  for (const auto& member : roster.members) {
    if (member.rank >= static_cast<std::uint32_t>(size()) || (is_guest() && member.rank == 0)) continue;
    if (world_.options().is_guest(static_cast<int>(member.rank)))
      world_.set_rank_name(static_cast<int>(member.rank), member.name.substr(0, kMaxNameBytes));
    else if (member.rank != 0 || is_worth_a_race(member))
      targets[member.rank] = targets_in(member);
  }
  dials_.clear();
  if (!is_guest() && !targets[0].empty()) {
    linked_[0] = false;
    add_link(0, targets[0]);
  }
  for (int peer = 1; peer < (is_guest() ? size() : rank()); ++peer) {
    if (peer == rank()) continue;
    const bool relayed = world_.options().is_relayed(rank(), peer);
    const int reached = relayed ? world_.options().relay_of(rank(), peer) : peer;
    const auto& known = targets[static_cast<std::size_t>(reached)];
    if (known.empty())
      return world_.fail(
          {Errc::protocol_error, "the coordinator's roster does not have " + rank_text(static_cast<std::uint64_t>(reached)), 0});
    if (is_guest())
      add_dial(peer, {known.front().host, static_cast<std::uint16_t>(known.front().port)}, relayed);
    else
      add_link(peer, known);
  }
  for (std::size_t i = 0; i < dials_.size(); ++i) dial(i);
  for (const auto& [session, message] : std::exchange(held_, {})) {
    if (!world_.failure().ok()) break;
    if (const auto* propose = std::get_if<wire::Propose>(&message)) on_propose(*session, *propose);
    if (const auto* connect = std::get_if<wire::Connect>(&message)) on_connect(*session, *connect);
  }
  open_if_linked();
}

/// A guest dials one address, and knows of no other.
std::vector<wire::Endpoint> Meeting::targets_in(wire::Member member) const {
  if (is_guest()) member.endpoints.clear();
  // A loopback address is the coordinator's machine's own.
  if (is_loopback({member.host, 0})) member.host = options_.coordinator->host;
  return targets_of(member);
}

bool Meeting::is_here(int native) const {
  const auto index = static_cast<std::size_t>(native);
  return native == 0 || (coordinates() ? joined_[index].has_value() : linked_[index]);
}

int Meeting::present() const {
  int count = seats_ ? seats_->taken() : 0;
  for (int peer = 0; peer < natives(); ++peer) count += is_here(peer) ? 1 : 0;
  return count;
}

void Meeting::tell_guests() {
  if (!seats_) return;
  seats_->tell(present());
  if (options_.on_guests) options_.on_guests(seats_->names());
}

void Meeting::begin_linking_if_complete() {
  tell_guests();
  if (rank() != 0 || complete_ || present() < size()) return;
  complete_ = true;
  if (seats_) {
    int guest = natives();
    for (auto& seat : seats_->release()) {
      world_.set_rank_name(guest, seat.name);
      linked_[static_cast<std::size_t>(guest)] = true;
      world_.adopt(std::move(seat.session), guest++);
    }
    seats_.reset();
  }
  const wire::Roster roster = make_roster();
  if (coordinates() && is_worth_a_race(roster.members.front()))
    for (int peer = 1; peer < natives(); ++peer) linked_[static_cast<std::size_t>(peer)] = false;
  for (int peer = 1; peer < size(); ++peer)
    if (coordinates() || world_.options().is_guest(peer)) world_.send_control(peer, roster);
  open_if_linked();
}

wire::Roster Meeting::make_roster() const {
  wire::Roster roster;
  roster.world_id = options_.world_id;
  if (coordinates()) roster.members.push_back({0, options_.coordinator->host, options_.coordinator->port, "", own_endpoints()});
  for (int peer = 1; peer < size(); ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const auto member = static_cast<std::uint32_t>(peer);
    if (world_.options().is_guest(peer)) {
      roster.members.push_back({member, "", 0, world_.rank_name(peer)});
    } else if (coordinates()) {
      roster.members.push_back(*joined_[index]);
    } else {
      const Address& address = options_.roster[index].front();
      roster.members.push_back({member, address.host, address.port, ""});
    }
  }
  return roster;
}

void Meeting::open_if_linked() {
  if (opening_.has_links() || std::find(linked_.begin(), linked_.end(), false) != linked_.end()) return;
  opening_.links_are_there();
}

// --- the end ---

std::vector<int> Meeting::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < (seats_ ? natives() : size()); ++peer)
    if (!linked_[static_cast<std::size_t>(peer)]) ranks.push_back(peer);
  return ranks;
}

void Meeting::set_deadline(Duration delay) {
  deadline_timer_ = loop_.after(delay, [this] {
    deadline_timer_ = 0;
    on_deadline();
  });
}

void Meeting::on_deadline() {
  // Rank 0's own deadline passes about now, and it knows who is missing.
  if (rank() != 0 && world_.has_session(0) && !std::exchange(grace_given_, true)) return set_deadline(kGrace);
  std::string text = rank_text(static_cast<std::uint64_t>(rank())) + " has not met the others within " +
                     std::to_string(options_.timeout.whole_milliseconds()) + " ms";
  const std::vector<int> unlinked = missing();
  int culprit = -1;
  if (seats_) text += ": " + std::to_string(seats_->taken()) + " of " + std::to_string(world_.options().guests) + " guests are here";
  if (!roster_known_ && world_.has_session(0))
    text += ": the coordinator still waits for other ranks";
  else if (!unlinked.empty()) {
    text += ": no connection with " + list_of(unlinked);
    culprit = unlinked.front();
  } else if (!seats_) {
    text += rank() == 0 ? ": not ready: " + list_of(opening_.awaited()) : ": other ranks are not ready";
  }
  for (const Race& attempt : races_)
    if (!linked_[static_cast<std::size_t>(attempt.rank)] && !attempt.race->last_error().empty()) text += "; " + attempt.race->last_error();
  for (const Dial& attempt : dials_)
    if (!world_.has_session(attempt.rank) && !attempt.last_error.empty()) text += "; " + attempt.last_error;
  if (reception_ != nullptr && reception_->refusals().count > 0)
    text += "; connections refused because they have another token or RINGLET_ENCRYPT, or none: " +
            std::to_string(reception_->refusals().count) + ", the last from " + reception_->refusals().last;
  world_.fail({Errc::timed_out, text, culprit});
}

/// One of them may be in a call of its own.
void Meeting::stop_races() {
  for (Race& attempt : races_) loop_.defer([gone = std::shared_ptr<LinkRace>(std::move(attempt.race))] {});
  races_.clear();
}

void Meeting::finish(const Status& status) {
  if (!on_met_) return;
  if (deadline_timer_ != 0) loop_.cancel(std::exchange(deadline_timer_, 0));
  world_.set_control_handler(nullptr);
  world_.set_failure_handler(nullptr);
  if (!status.ok()) stop_races();
  met_ = status.ok() && world_.options().guests > 0 && !is_guest();
  if (!met_) listeners_.clear();
  if (seats_)
    for (auto& guest : seats_->release())
      if (guest.session) send_off(std::move(guest.session), status);
  seats_.reset();
  while (!strangers_.empty()) {
    Session& stranger = *strangers_.back().session;
    if (met_)
      reject(stranger, group_is_complete());
    else
      status.ok() ? drop_stranger(stranger) : reject(stranger, status);
  }
  loop_.defer([on_met = std::exchange(on_met_, nullptr), status] { on_met(status); });
}

}  // namespace ringlet
