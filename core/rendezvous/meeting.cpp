#include "core/rendezvous/meeting.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxStrangers = 256;
constexpr std::size_t kMaxHelloBytes = 4096;
constexpr Duration kMaxPause = Duration::seconds(1);
constexpr Duration kRejectedTime = Duration::seconds(1);
constexpr Duration kGrace = Duration::seconds(1);
constexpr int kMostRefusals = 3;

std::string rank_text(std::uint64_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

/// Takes a stranger's first message.
class Meeting::StrangerSink final : public GatheringSink {
 public:
  StrangerSink(Meeting& meeting, Session& session) : meeting_(meeting), session_(session) {}
  void frame_ended() override { meeting_.on_stranger_spoke(session_, gathered()); }

 private:
  Meeting& meeting_;
  Session& session_;
};

Meeting::Meeting(EventLoop& loop, Network& network, Authenticator& authenticator, Reception& reception, World& world,
                 MeetingOptions options)
    : loop_(loop),
      network_(network),
      reception_(reception),
      world_(world),
      dialler_(loop, network, authenticator),
      options_(std::move(options)),
      joined_(static_cast<std::size_t>(world.options().size)),
      linked_(static_cast<std::size_t>(world.options().size)),
      ready_(static_cast<std::size_t>(world.options().size)),
      alive_(std::make_shared<bool>(true)) {
  reception_.set_on_link([this](std::unique_ptr<Link> link) { on_stranger(std::move(link)); });
}

Meeting::~Meeting() {
  *alive_ = false;
  reception_.set_on_link(nullptr);
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
  if (Status status = listen(); !status.ok()) return world_.fail(status);
  begin_dialling();
}

Status Meeting::listen() {
  if (!listeners_.empty()) return {};
  std::vector<Address> addresses;
  if (!coordinates()) {
    addresses = options_.roster[static_cast<std::size_t>(rank())];
  } else if (rank() == 0) {
    addresses = {{options_.listen_host.value_or(options_.coordinator->host), options_.coordinator->port}};
  } else if (options_.listen_host) {
    addresses = {{*options_.listen_host, 0}};
  } else {
    const bool v6 = options_.coordinator->host.find(':') != std::string::npos;
    if (is_loopback(*options_.coordinator))
      addresses = {{v6 ? "::1" : "127.0.0.1", 0}};
    else
      addresses = {{v6 ? "::" : "0.0.0.0", 0}};
  }
  for (const auto& address : addresses) {
    auto listener = network_.listen(address, reception_.acceptor());
    if (!listener.ok())
      return {listener.status().code(), rank_text(static_cast<std::uint64_t>(rank())) + " cannot listen: " + listener.status().text(),
              rank()};
    listeners_.push_back(std::move(listener).value());
  }
  return {};
}

void Meeting::begin_dialling() {
  if (coordinates()) {
    if (rank() == 0) return;
    add_dial(0, {*options_.coordinator});
  } else {
    for (int peer = 0; peer < rank(); ++peer) add_dial(peer, options_.roster[static_cast<std::size_t>(peer)]);
  }
  for (std::size_t i = 0; i < dials_.size(); ++i) dial(i);
}

void Meeting::add_dial(int peer, std::vector<Address> addresses) {
  Dial attempt;
  attempt.rank = peer;
  attempt.addresses = std::move(addresses);
  dials_.push_back(std::move(attempt));
}

void Meeting::dial(std::size_t index) {
  Dial& attempt = dials_[index];
  const Address address = attempt.addresses[attempt.next++ % attempt.addresses.size()];
  LinkRequest request;
  request.from = static_cast<std::uint32_t>(rank());
  request.to = static_cast<std::uint32_t>(attempt.rank);
  dialler_.dial(address, DialTimes{}, request, [this, alive = alive_, index](Result<std::unique_ptr<Link>> link) {
    if (*alive && on_met_) on_dialled(index, std::move(link));
  });
}

void Meeting::on_dial_failed(std::size_t index, const Status& status) {
  Dial& attempt = dials_[index];
  attempt.last_error = status.text();
  attempt.refusals = status.code() == Errc::mismatch ? attempt.refusals + 1 : 0;
  // Once may be a rank that went away at that moment; what speaks no Ringlet, or another version, will not change its mind.
  if (attempt.refusals >= kMostRefusals || status.code() == Errc::protocol_error)
    return world_.fail({status.code(), rank_text(static_cast<std::uint64_t>(rank())) + " cannot join: " + status.text(), attempt.rank});
  const Duration pause = attempt.pause;
  attempt.pause = std::min(attempt.pause * 2, kMaxPause);
  loop_.after(pause, [this, alive = alive_, index] {
    if (*alive && on_met_) dial(index);
  });
}

void Meeting::on_dialled(std::size_t index, Result<std::unique_ptr<Link>> link) {
  if (!link.ok()) return on_dial_failed(index, link.status());
  const Dial& attempt = dials_[index];
  world_.adopt(std::make_unique<Session>(std::move(link).value(), loop_, static_cast<SessionOwner&>(*this), world_.options().session),
               attempt.rank);
  world_.send_control(attempt.rank, make_hello());
}

wire::Hello Meeting::make_hello() const {
  wire::Hello hello;
  hello.rank = static_cast<std::uint32_t>(rank());
  hello.world_size = static_cast<std::uint32_t>(size());
  if (roster_known_) {
    hello.purpose = wire::Hello::Purpose::link;
    hello.world_id = options_.world_id;
  } else {
    hello.port = listeners_.front()->address().port;
  }
  return hello;
}

// --- strangers ---

void Meeting::on_stranger(std::unique_ptr<Link> link) {
  if (!on_met_ || strangers_.size() >= kMaxStrangers) return;
  auto session = std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), world_.options().session);
  auto sink = std::make_unique<StrangerSink>(*this, *session);
  strangers_.push_back({std::move(session), std::move(sink)});
}

PayloadSink* Meeting::on_frame(Session& session, const FrameHeader& header) {
  const auto it = std::find_if(strangers_.begin(), strangers_.end(), [&](const Stranger& s) { return s.session.get() == &session; });
  if (it == strangers_.end()) return nullptr;
  if (header.kind == FrameKind::control && header.payload_bytes <= kMaxHelloBytes) {
    it->sink->begin();
    return it->sink.get();
  }
  drop_stranger(session);
  return nullptr;
}

void Meeting::on_session_failed(Session& session, const Status&) { drop_stranger(session); }

void Meeting::on_session_ended(Session& session) { drop_stranger(session); }

/// A session may not go inside its own call: it is closed now and destroyed later.
std::unique_ptr<Session> Meeting::take_stranger(Session& session) {
  const auto it = std::find_if(strangers_.begin(), strangers_.end(), [&](const Stranger& s) { return s.session.get() == &session; });
  if (it == strangers_.end()) return nullptr;
  std::unique_ptr<Session> taken = std::move(it->session);
  std::shared_ptr<StrangerSink> sink = std::move(it->sink);
  strangers_.erase(it);
  loop_.defer([sink] {});
  return taken;
}

void Meeting::drop_stranger(Session& session) {
  std::shared_ptr<Session> taken = take_stranger(session);
  if (!taken) return;
  taken->close();
  std::erase_if(held_, [&](const auto& entry) { return entry.first == &session; });
  loop_.defer([taken] {});
}

void Meeting::reject(Session& session, const Status& status) {
  std::unique_ptr<Session> taken = take_stranger(session);
  if (!taken) return;
  const std::string payload = wire::encode_control(wire::to_abort(status));
  FrameHeader header;
  header.kind = FrameKind::control;
  taken->send_owned(header, std::as_bytes(std::span(payload)));
  taken->discard_received();
  taken->finish_sending();
  rejected_.push_back(std::move(taken));
  loop_.after(kRejectedTime, [this, alive = alive_] {
    if (*alive) rejected_.pop_front();
  });
}

void Meeting::on_stranger_spoke(Session& session, ConstBytes payload) {
  const auto message = wire::decode_control(payload);
  const auto* hello = message ? std::get_if<wire::Hello>(&*message) : nullptr;
  const bool spoke_before = std::any_of(held_.begin(), held_.end(), [&](const auto& entry) { return entry.first == &session; });
  if (hello == nullptr || spoke_before) return drop_stranger(session);
  if (Status status = check_hello(*hello); !status.ok()) {
    const bool same_world_wrong_size = status.code() == Errc::mismatch;
    reject(session, status);
    if (same_world_wrong_size) world_.fail(status);
    return;
  }
  if (hello->purpose == wire::Hello::Purpose::join) return on_join(session, *hello);
  if (!roster_known_) {
    held_.push_back({&session, *hello});
    return;
  }
  on_link(session, *hello);
}

Status Meeting::check_hello(const wire::Hello& hello) const {
  const std::string who = rank_text(hello.rank);
  if (hello.world_size != static_cast<std::uint32_t>(size()))
    return {Errc::mismatch,
            who + " was started for a world of " + std::to_string(hello.world_size) + " ranks, " +
                rank_text(static_cast<std::uint64_t>(rank())) + " for one of " + std::to_string(size()) +
                "; give all ranks the same world size",
            static_cast<int>(std::min<std::uint32_t>(hello.rank, 1u << 30))};
  if (hello.rank >= hello.world_size)
    return {Errc::invalid_argument,
            who + " does not exist in a world of " + std::to_string(hello.world_size) + " ranks, which are numbered from 0"};
  if (hello.rank == static_cast<std::uint32_t>(rank()) || world_.has_session(static_cast<int>(hello.rank)))
    return {Errc::invalid_argument, who + " is already there; each process needs a rank of its own"};
  return {};
}

void Meeting::on_join(Session& session, const wire::Hello& hello) {
  if (!coordinates() || rank() != 0 || hello.port == 0 || hello.port > 65'535)
    return reject(session, {Errc::invalid_argument, "this rank is not the coordinator of rank " + std::to_string(hello.rank)});
  const int peer = static_cast<int>(hello.rank);
  Address address{hello.host, static_cast<std::uint16_t>(hello.port)};
  if (address.host.empty()) {
    const auto seen = parse_address(session.peer_name());
    if (!seen.ok())
      return reject(session,
                    {Errc::invalid_argument, "the coordinator cannot see the address of " + rank_text(hello.rank) + "; give it one"});
    address.host = seen.value().host;
  }
  world_.adopt(take_stranger(session), peer);
  joined_[static_cast<std::size_t>(peer)] = address;
  linked_[static_cast<std::size_t>(peer)] = true;
  send_roster_if_complete();
}

void Meeting::on_link(Session& session, const wire::Hello& hello) {
  const int peer = static_cast<int>(hello.rank);
  if (Status status = check_hello(hello); !status.ok()) return reject(session, status);  // it may have been held
  if (hello.world_id != options_.world_id) {
    const Status status{Errc::mismatch,
                        coordinates() ? rank_text(hello.rank) + " belongs to another world"
                                      : rank_text(hello.rank) + "'s hostfile differs from that of " +
                                            rank_text(static_cast<std::uint64_t>(rank())) + "; give all ranks the same",
                        peer};
    reject(session, status);
    if (!coordinates()) world_.fail(status);
    return;
  }
  if (peer < rank())
    return reject(session,
                  {Errc::protocol_error, "the higher rank dials, but " + rank_text(hello.rank) + " dialled " + std::to_string(rank())});
  world_.adopt(take_stranger(session), peer);
  linked_[static_cast<std::size_t>(peer)] = true;
  world_.send_control(peer, wire::Welcome{static_cast<std::uint32_t>(rank())});
  report_ready_if_complete();
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
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    if (static_cast<int>(welcome->rank) != from) {
      return world_.fail({Errc::mismatch,
                          "at the address of " + rank_text(static_cast<std::uint64_t>(from)) + " answers " + rank_text(welcome->rank) +
                              "; check the addresses",
                          from});
    }
    linked_[static_cast<std::size_t>(from)] = true;
    return report_ready_if_complete();
  }
  if (std::holds_alternative<wire::Ready>(message)) {
    if (rank() != 0) return unexpected();
    ready_[static_cast<std::size_t>(from)] = true;
    return begin_if_all_ready();
  }
  if (std::holds_alternative<wire::Begin>(message)) {
    if (from != 0 || !ready_sent_) return unexpected();
    return finish({});
  }
  unexpected();
}

void Meeting::on_roster(const wire::Roster& roster) {
  options_.world_id = roster.world_id;
  roster_known_ = true;
  linked_[0] = true;
  std::vector<std::optional<Address>> addresses(static_cast<std::size_t>(size()));
  for (const auto& member : roster.members)
    if (member.rank < addresses.size() && member.port > 0 && member.port <= 65'535)
      addresses[member.rank] = Address{member.host, static_cast<std::uint16_t>(member.port)};
  dials_.clear();
  for (int peer = 1; peer < rank(); ++peer) {
    const auto& address = addresses[static_cast<std::size_t>(peer)];
    if (!address)
      return world_.fail(
          {Errc::protocol_error, "the coordinator's roster does not have " + rank_text(static_cast<std::uint64_t>(peer)), 0});
    add_dial(peer, {*address});
  }
  for (std::size_t i = 0; i < dials_.size(); ++i) dial(i);
  for (const auto& [session, hello] : std::exchange(held_, {}))
    if (world_.failure().ok()) on_link(*session, hello);
  report_ready_if_complete();
}

void Meeting::send_roster_if_complete() {
  wire::Roster roster;
  roster.world_id = options_.world_id;
  for (int peer = 1; peer < size(); ++peer) {
    const auto& address = joined_[static_cast<std::size_t>(peer)];
    if (!address) return;
    roster.members.push_back({static_cast<std::uint32_t>(peer), address->host, address->port});
  }
  for (int peer = 1; peer < size(); ++peer) world_.send_control(peer, roster);
  report_ready_if_complete();
}

void Meeting::report_ready_if_complete() {
  if (ready_sent_ || std::find(linked_.begin(), linked_.end(), false) != linked_.end()) return;
  ready_sent_ = true;
  if (rank() != 0) return world_.send_control(0, wire::Ready{});
  ready_[0] = true;
  begin_if_all_ready();
}

void Meeting::begin_if_all_ready() {
  if (std::find(ready_.begin(), ready_.end(), false) != ready_.end()) return;
  for (int peer = 1; peer < size(); ++peer) world_.send_control(peer, wire::Begin{});
  finish({});
}

// --- the end ---

std::string Meeting::missing() const {
  std::string ranks;
  for (int peer = 0; peer < size(); ++peer) {
    if (linked_[static_cast<std::size_t>(peer)]) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(peer);
  }
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
  const std::string ranks = missing();
  int culprit = -1;
  if (!roster_known_ && world_.has_session(0))
    text += ": the coordinator still waits for other ranks";
  else if (!ranks.empty()) {
    text += ": no connection with rank " + ranks;
    culprit = static_cast<int>(std::find(linked_.begin(), linked_.end(), false) - linked_.begin());
  } else {
    text += ": other ranks are not ready";
  }
  for (const Dial& attempt : dials_)
    if (!world_.has_session(attempt.rank) && !attempt.last_error.empty()) text += "; " + attempt.last_error;
  if (const auto& refusals = reception_.refusals(); refusals.count > 0)
    text += "; connections refused because they have another token, or none: " + std::to_string(refusals.count) + ", the last from " +
            refusals.last;
  world_.fail({Errc::timed_out, text, culprit});
}

void Meeting::finish(const Status& status) {
  if (!on_met_) return;
  if (deadline_timer_ != 0) loop_.cancel(std::exchange(deadline_timer_, 0));
  world_.set_control_handler(nullptr);
  world_.set_failure_handler(nullptr);
  listeners_.clear();
  while (!strangers_.empty()) {
    Session& stranger = *strangers_.back().session;
    status.ok() ? drop_stranger(stranger) : reject(stranger, status);
  }
  loop_.defer([on_met = std::exchange(on_met_, nullptr), status] { on_met(status); });
}

}  // namespace ringlet
