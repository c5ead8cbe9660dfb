#include "core/rendezvous/meeting.hpp"

#include <algorithm>
#include <utility>

#include "core/base/rank_text.hpp"
#include "core/rendezvous/rank_settings.hpp"

namespace ringlet {

namespace {

constexpr Duration kGrace = Duration::seconds(1);
/// The time between reports of what is missing; a shorter timeout has four of them.
constexpr Duration kReports = Duration::seconds(5);
constexpr std::size_t kMaxRosterNameBytes = 256;

}  // namespace

Meeting::Meeting(EventLoop& loop, Network& network, Authenticator& authenticator, IncomingLinks* incoming, World& world,
                 MeetingOptions options)
    : loop_(loop),
      incoming_(incoming),
      world_(world),
      options_(std::move(options)),
      roster_known_(!options_.coordinator || rank() == 0),
      links_(world.options().size, world.options().rank),
      closing_(loop, world.options().session),
      dialler_(loop, network, authenticator, options_.shortcut),
      listeners_(network),
      dials_(loop, dialler_, world, links_, closing_,
             {options_.timeout, options_.interfaces, options_.only_these_interfaces, options_.coordinator_listens}, [this] { advance(); }),
      barrier_(loop, world, options_.door, [this] { finish({}); }) {
  if (incoming_ == nullptr) return;
  incoming_->set_on_link([this](std::unique_ptr<Link> link) {
    if (admission_) admission_->receive(std::move(link));
  });
  incoming_->relay_for(world_.options());
}

Meeting::~Meeting() {
  if (incoming_ != nullptr) incoming_->set_on_link(nullptr);
  for (const TimerId timer : {deadline_timer_, report_timer_})
    if (timer != 0) loop_.cancel(timer);
}

// --- the phases ---

void Meeting::start(std::function<void(const Status&)> on_met) {
  on_met_ = std::move(on_met);
  world_.set_control_handler(guard_.wrap([this](int from, const wire::ControlMessage& message) { on_control(from, message); }));
  world_.set_failure_handler(guard_.wrap([this](const Status& status) { finish(status); }));
  set_deadline(options_.timeout);
  schedule_report();
  // A guest neither listens nor joins: rank 0 has its request already and will send it the roster.
  if (is_guest()) return;
  if (Status status = listen(); !status.ok()) return world_.fail(status);
  admit();
  dial();
}

Status Meeting::listen() {
  const Status status =
      listeners_.open(addresses_to_listen_at(options_, rank()), options_.also_at, options_.ports, rank(), incoming_->acceptor());
  if (!status.ok()) return {status.code(), rank_text(rank()) + " cannot listen: " + status.text(), rank()};
  if (rank() == 0 && options_.coordinator && options_.coordinator->port == 0) options_.coordinator->port = listeners_.address().port;
  if (options_.on_listening) options_.on_listening(listeners_.address().port);
  return {};
}

void Meeting::admit() {
  if (rank() == 0) {
    CoordinatorOptions options;
    options.world_id = options_.world_id;
    options.natives_join = options_.coordinator.has_value();
    options.timeout = options_.timeout;
    options.on_guests = options_.on_guests;
    if (options_.coordinator) options.known.push_back(own_member());
    for (std::uint32_t peer = 0; peer < options_.roster.size(); ++peer) {
      const Address& address = options_.roster[peer].front();
      options.known.push_back({peer, address.host, address.port});
    }
    coordinator_ = std::make_unique<Coordinator>(loop_, world_, links_, std::move(options), [this] { advance(); });
  }
  AdmissionOptions options;
  options.has_coordinator = options_.coordinator.has_value();
  if (roster_known_) options.world_id = options_.world_id;
  admission_ = std::make_unique<Admission>(loop_, world_, links_, closing_, coordinator_.get(), options, [this] { advance(); });
}

void Meeting::dial() {
  if (!roster_known_) return dials_.join(*options_.coordinator, make_join());
  if (options_.coordinator) return;
  for (auto& link : plan_links(options_.roster, rank())) dials_.connect(std::move(link), options_.world_id, options_.name);
}

wire::Member Meeting::own_member() const {
  return {0, options_.coordinator->host, options_.coordinator->port, "", listeners_.reachable(options_.endpoints)};
}

wire::Join Meeting::make_join() const {
  wire::Join join{settings_of(world_.options()), "", listeners_.address().port, listeners_.reachable(options_.endpoints)};
  if (options_.only_endpoints && !join.endpoints.empty()) {
    join.host = join.endpoints.front().host;
    join.port = join.endpoints.front().port;
  }
  return join;
}

std::vector<Address> Meeting::listening_addresses() const {
  std::vector<Address> addresses;
  for (const auto& known : options_.roster) addresses.push_back(known.front());
  if (!options_.coordinator) return addresses;
  addresses.assign(static_cast<std::size_t>(world_.options().natives()), {});
  for (const wire::Member& member : coordinator_ ? coordinator_->members() : members_)
    if (member.rank < addresses.size()) addresses[member.rank] = {member.host, static_cast<std::uint16_t>(member.port)};
  addresses.front() = *options_.coordinator;
  return addresses;
}

/// Begins the next phase where everything that it needs is there.
void Meeting::advance() {
  if (!world_.failure().ok() || !on_met_) return;
  if (coordinator_) coordinator_->update();
  if (links_.complete() && !barrier_.entered()) barrier_.enter();
}

// --- messages from ranks ---

void Meeting::on_control(int from, const wire::ControlMessage& message) {
  const bool waits_for_roster = from == 0 && !roster_known_;
  if (const auto* roster = std::get_if<wire::Roster>(&message); roster != nullptr && waits_for_roster) return on_roster(*roster);
  if (const auto* seat = std::get_if<wire::Seat>(&message); seat != nullptr && waits_for_roster && seat->present <= seat->world_size) {
    if (options_.on_present) options_.on_present(static_cast<int>(seat->present));
    return;
  }
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) return on_welcome(from, *welcome);
  if (barrier_.on_control(from, message)) return;
  world_.fail({Errc::protocol_error, rank_text(from) + " sent a message that does not belong here while the ranks met", from});
}

void Meeting::on_roster(const wire::Roster& roster) {
  options_.world_id = roster.world_id;
  roster_known_ = true;
  members_ = roster.members;
  links_.confirm(0);
  const WorldOptions& own = world_.options();
  for (const wire::Member& member : roster.members)
    if (member.rank < static_cast<std::uint32_t>(own.size) && own.is_guest(static_cast<int>(member.rank)))
      world_.set_rank_name(static_cast<int>(member.rank), member.name.substr(0, kMaxRosterNameBytes));
  auto plan = plan_links(roster, own, *options_.coordinator);
  if (!plan.ok()) return world_.fail(plan.status());
  for (PlannedLink& link : plan.value()) {
    if (link.peer == 0) links_.expect_another(0);
    dials_.connect(std::move(link), options_.world_id, options_.name);
  }
  if (admission_) admission_->set_world_id(options_.world_id);
  advance();
}

void Meeting::on_welcome(int from, const wire::Welcome& welcome) {
  if (welcome.rank != static_cast<std::uint32_t>(from))
    return world_.fail(
        {Errc::mismatch, "at the address of " + rank_text(from) + " answers " + rank_text(welcome.rank) + "; check the addresses", from});
  links_.confirm(from);
  advance();
}

// --- the end ---

void Meeting::set_deadline(Duration delay) {
  deadline_timer_ = loop_.after(delay, [this] {
    deadline_timer_ = 0;
    on_deadline();
  });
}

void Meeting::on_deadline() {
  // Rank 0's deadline passes at about the same time, and its reason names the missing ranks, so this rank waits a little longer.
  if (rank() != 0 && world_.has_session(0) && !std::exchange(grace_given_, true)) return set_deadline(kGrace);
  world_.fail(timeout_status());
}

void Meeting::schedule_report() {
  report_timer_ = loop_.after(std::min(kReports, options_.timeout / 4), [this] {
    // A report may end the meeting, which cancels the next one.
    schedule_report();
    report();
  });
}

void Meeting::report() {
  const WorldOptions& own = world_.options();
  if (rank() != 0 && world_.has_session(0)) {
    // Guests may come later than all natives; nobody is late who waits for one.
    const std::vector<int> missing = links_.missing(own.natives());
    if (roster_known_ && !barrier_.entered()) world_.send_control(0, wire::Unmet{{missing.begin(), missing.end()}});
    return;
  }
  const bool waits_only_for_guests = coordinator_ && coordinator_->awaits_guests() && links_.missing(own.natives()).empty();
  if (waits_only_for_guests || !options_.on_waiting) return;
  const std::string text = "has not met the others yet" + waits_for().first;
  if (std::exchange(reported_, text) != text) options_.on_waiting(text);
}

Status Meeting::timeout_status() const {
  const auto [text, culprit] = waits_for();
  return {Errc::timed_out,
          rank_text(rank()) + " has not met the others within " + std::to_string(options_.timeout.whole_milliseconds()) + " ms" + text,
          culprit};
}

std::pair<std::string, int> Meeting::waits_for() const {
  const WorldOptions& own = world_.options();
  std::string text;
  const bool awaits_guests = coordinator_ && coordinator_->awaits_guests();
  if (awaits_guests) text += ": " + std::to_string(coordinator_->guests_here()) + " of " + std::to_string(own.guests) + " guests are here";
  const std::vector<int> missing = links_.missing(awaits_guests ? own.natives() : own.size);
  int culprit = -1;
  if (!roster_known_ && world_.has_session(0)) {
    text += ": the coordinator still waits for other ranks";
  } else if (!missing.empty()) {
    text += ": no connection with " + ranks_text(missing);
    if (missing.size() == 1) culprit = missing.front();
  } else if (!awaits_guests) {
    text += rank() == 0 ? ": not ready: " + barrier_.awaited_text() : ": other ranks are not ready";
    if (rank() == 0) culprit = barrier_.latest();
  }
  text += dials_.complaints();
  if (incoming_ != nullptr && incoming_->refusals().count > 0)
    text += "; connections refused because they have another token or RINGLET_ENCRYPT, or none: " +
            std::to_string(incoming_->refusals().count) + ", the last from " + incoming_->refusals().last;
  return {text, culprit};
}

void Meeting::finish(const Status& status) {
  if (!on_met_) return;
  for (TimerId* timer : {&deadline_timer_, &report_timer_})
    if (*timer != 0) loop_.cancel(std::exchange(*timer, 0));
  world_.set_control_handler(nullptr);
  world_.set_failure_handler(nullptr);
  const bool takes_latecomers = status.ok() && world_.options().guests > 0;
  // Where the world is elastic, an open port says that this process lives.
  if (!takes_latecomers && !(status.ok() && world_.options().elastic)) listeners_.close();
  if (!status.ok()) dials_.stop();
  if (coordinator_) coordinator_->reject_guests(status, closing_);
  if (admission_ && takes_latecomers)
    admission_->refuse_all({Errc::invalid_argument, "the group is complete: all its " + std::to_string(world_.options().size) +
                                                        " ranks have met; who comes later has to wait for the next one"});
  else if (admission_)
    status.ok() ? admission_->drop_all() : admission_->refuse_all(status);
  loop_.defer([on_met = std::exchange(on_met_, nullptr), status] { on_met(status); });
}

}  // namespace ringlet
