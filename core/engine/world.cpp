#include "core/engine/world.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/engine/blame.hpp"
#include "core/engine/send_control.hpp"

namespace ringlet {

namespace {

constexpr Duration kTick = Duration::milliseconds(50);
constexpr std::size_t kMaxUnreadAnswers = 64;
constexpr Duration kWordOfRelay = Duration::milliseconds(500);  // until a guest blames the other one for a relayed link that broke
constexpr Duration kTimeToEnd = Duration::seconds(1);           // for this side's end of a link to leave, where the peer has ended its own

}  // namespace

World::World(EventLoop& loop, const WorldOptions& options)
    : loop_(loop),
      options_(options.within_limits()),
      peers_(options.size),
      groups_(*this, options_.max_groups),
      heartbeats_(options_, peers_, loop.now()),
      surveys_(*this),
      deadlines_(*this, groups_, surveys_),
      delays_(*this, groups_, surveys_),
      clock_(options_, peers_),
      parts_(*this, groups_),
      heard_(static_cast<std::size_t>(options.size), options.epoch == 0) {
  group_ = &groups_.create(*groups_.reserve(), Membership::of_world(options.size), options.rank);
  if (options.size > 1) schedule_tick();
}

World::~World() {
  if (tick_timer_ != 0) loop_.cancel(tick_timer_);
  if (word_timer_ != 0) loop_.cancel(word_timer_);
  // Before any message is destroyed that waits in a session's queue, too.
  groups_.withdraw();
}

void World::adopt(std::unique_ptr<Session> session, int rank) {
  RINGLET_CHECK(rank >= 0 && rank < options_.size && rank != options_.rank && !has_session(rank));
  replace(std::move(session), rank);
}

void World::adopt(std::unique_ptr<Link> link, int rank) {
  adopt(std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), options_.session), rank);
}

std::unique_ptr<Session> World::replace(std::unique_ptr<Session> session, int rank) {
  session->set_owner(*this);
  session->set_peer(rank);
  session->set_early_limits(options_.early_limits);
  auto before = peers_.exchange_session(rank, std::move(session));
  close_if_over(peers_.session(rank));
  if (failure_.ok()) return before;
  // The world has failed while this link was being dialled.
  if (!options_.elastic) peers_.session(rank).discard_received();
  send_end(peers_.session(rank));
  return before;
}

void World::set_epoch_user(EpochUser& user) {
  epoch_user_ = &user;
  for (auto& [rank, message] : std::exchange(early_agreement_, {}))
    loop_.defer([this, rank = rank, message = std::move(message), watch = guard_.watch()] {
      if (watch.alive() && epoch_user_ != nullptr) epoch_user_->on_message(rank, message);
    });
}

std::unique_ptr<Session> World::hand_over(int rank) {
  RINGLET_CHECK(options_.elastic && !failure_.ok());
  groups_.withdraw();
  return peers_.exchange_session(rank, std::make_unique<Session>(loop_, static_cast<SessionOwner&>(*this), rank));
}

void World::retire() {
  // The user stays for the ranks that do not go on, which may still ask what was decided.
  surveys_.cancel_all();
  if (tick_timer_ != 0) loop_.cancel(std::exchange(tick_timer_, 0));
  if (options_.guests == 0) return;
  tick_timer_ = loop_.after(options_.close_timeout, [this] {
    tick_timer_ = 0;
    for (int guest = options_.natives(); guest < options_.size; ++guest)
      if (has_session(guest)) session_with(guest).close();
  });
}

void World::send_control(int rank, const wire::ControlMessage& message) { ringlet::send_control(session_with(rank), message); }

// --- groups ---

void World::set_placement(const AgreedPlacement& agreed) {
  options_.set_placement(agreed);
  group_->set_placement(agreed);
}

void World::split(GroupEngine& parent, std::uint16_t stream, SplitTask task) {
  split_group(groups_, *this, parent, stream, std::move(task));
}

void World::create(GroupEngine& parent, CreateTask task) { create_group(groups_, *this, parent, std::move(task)); }

void World::leave(GroupEngine& group) {
  deadlines_.forget(group);
  delays_.forget(group);
  groups_.leave(group);
}

// --- frames ---

PayloadSink* World::on_frame(Session& session, const FrameHeader& header) {
  const int peer = session.peer();
  switch (header.kind) {
    case FrameKind::control:
      return session.gather_control();
    case FrameKind::goodbye:
      on_goodbye(peer);
      return nullptr;
    case FrameKind::heartbeat:
      return nullptr;
    default:
      // Of a world that has failed, or of an earlier epoch.
      if (!failure_.ok() || !heard_[static_cast<std::size_t>(peer)]) return nullptr;
      if (GroupEngine* group = groups_.find(peer, header.group)) return group->on_frame(peer, header);
      groups_.on_late_frame(peer, header);
      return nullptr;
  }
}

void World::on_control(Session& session, ConstBytes payload) {
  const int peer = session.peer();
  const auto message = wire::decode_control(payload);
  if (!message) return on_violation(peer, "rank " + std::to_string(peer) + " sent a control message that cannot be read");
  if (const auto* abort = std::get_if<wire::Abort>(&*message)) return on_abort(peer, wire::to_status(*abort));
  if (const auto* revoke = std::get_if<wire::Revoke>(&*message); revoke != nullptr && options_.elastic) return on_revoke(peer, *revoke);
  if (options_.elastic && wire::is_of_agreement(*message)) {
    if (epoch_user_ != nullptr) return epoch_user_->on_message(peer, *message);
    // This rank may still meet the others while these agree already on who goes on without one of them.
    early_agreement_.insert_or_assign(peer, *message);
    return;
  }
  if (const auto* question = std::get_if<wire::StateQuestion>(&*message)) return on_question(peer, *question);
  if (const auto* state = std::get_if<wire::RankState>(&*message)) {
    if (!kCanTrace || !clock_.take(peer, *state)) surveys_.on_state(peer, *state);
    return;
  }
  const bool counts = failure_.ok() && heard_[static_cast<std::size_t>(peer)];
  if (parts_.on_message(peer, *message, counts)) return;
  // The handler is copied, because it may replace itself while it runs.
  if (const ControlHandler handler = control_handler_) return handler(peer, *message);
  on_violation(peer, "rank " + std::to_string(peer) + " sent a control message that belongs to the start of a group");
}

void World::on_abort(int peer, const Status& status) { fail(blame_for_abort(options_, peer, peers_.text_of(peer), status)); }

void World::on_revoke(int peer, const wire::Revoke& revoke) {
  if (revoke.epoch == options_.epoch) on_abort(peer, wire::to_status(wire::Abort{revoke.code, revoke.rank, revoke.text}));
}

void World::on_question(int peer, const wire::StateQuestion& question) {
  // A rank that asks faster than it reads the answers gets none.
  if (session_with(peer).unsent_owned() >= kMaxUnreadAnswers) return;
  send_control(peer, kCanTrace && question.about_clock ? clock_.answer(question, loop_.now()) : state(peer, question));
}

wire::RankState World::state(int peer, const wire::StateQuestion& question) const {
  wire::RankState state = groups_.state(peer, question);
  state.host = identity_.host;
  state.program = identity_.program;
  state.pid = identity_.pid;
  state.links = peers_.media();
  state.cipher = peers_.ciphers();
  state.parts = parts_text_;
  peers_.for_each_session([&](const Session& session) {
    state.bytes_sent += session.bytes_sent();
    state.bytes_received += session.bytes_received();
  });
  std::vector<Pending> pending;
  if (options_.warn_after > Duration{}) groups_.find_pending({loop_.now().nanoseconds - options_.warn_after.nanoseconds}, pending);
  state.stalled = !pending.empty();
  return state;
}

bool World::survey(Surveys::Done done) {
  if (surveys_.full() || closing_ || !failure_.ok()) return false;
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.size; ++rank)
    if (rank != options_.rank && has_session(rank) && !has_left_world(rank)) ranks.push_back(rank);
  surveys_.ask(ranks, std::move(done));
  return true;
}

void World::on_goodbye(int peer) {
  session_with(peer).drop_sources();
  session_with(peer).finish_sending();
  if (!failure_.ok()) return tell_lost(peer);
  parts_.on_left(peer);
  groups_.on_left_world(peer);
}

void World::on_session_failed(Session& session, const Status& status) {
  const int peer = session.peer();
  if (status.code() == Errc::protocol_error) return on_violation(peer, peers_.text_of(peer) + " broke the protocol: " + status.text());
  const Status lost{Errc::peer_lost, "lost " + peers_.text_of(peer) + ": " + status.text(), peer};
  if (options_.is_relayed(options_.rank, peer) && failure_.ok()) return on_relayed_link_lost(peer, lost);
  lose(peer, lost);
  finish_closing_if_done();
}

void World::on_violation(int rank, const std::string& text) { lose(rank, {Errc::protocol_error, text, rank}); }

void World::lose(int rank, const Status& status) {
  fail(status);
  // Also where nobody is there yet to be told: epochs that begin later ask for the link.
  session_with(rank).give_up();
  if (epoch_user_ != nullptr) tell_lost(rank);
}

void World::tell_lost(int rank) {
  loop_.defer([this, rank, watch = guard_.watch()] {
    if (watch.alive() && epoch_user_ != nullptr) epoch_user_->on_lost(rank);
  });
}

/// The relay may be to blame instead of the peer. This rank waits until the loss of the relay's own link, or another rank's Abort, shows
/// which it is. If the relay has left the world, the peer cannot be reached any more and counts as having left.
void World::on_relayed_link_lost(int peer, const Status& status) {
  const int relay = options_.relay_of(options_.rank, peer);
  if (has_left_world(relay)) {
    peers_.cut_off(peer);
    return groups_.on_left_world(peer);
  }
  if (word_timer_ != 0) return;
  word_timer_ = loop_.after(kWordOfRelay, [this, status] {
    word_timer_ = 0;
    fail(status);
  });
}

void World::on_session_ended(Session& session) {
  close_if_over(session);
  finish_closing_if_done();
}

void World::close_if_over(const Session& session) {
  if (session.closed() || !session.goodbye_received() || !session.receive_has_ended()) return;
  loop_.after(kTimeToEnd, guard_.wrap([this, peer = session.peer()] { session_with(peer).close(); }));
}

// --- the end ---

void World::fail(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = peers_.with_name(as_loss(options_, status));
  if (status.code() == Errc::mismatch && failure_.code() == Errc::peer_lost) mismatch_ = peers_.with_name(status);
  end_operations(failure_);
  peers_.for_each_session([&](Session& session) {
    if (!session.closed() && !session.goodbye_received()) send_end(session);
  });
  if (epoch_user_ != nullptr)
    loop_.defer([this, watch = guard_.watch()] {
      if (watch.alive() && epoch_user_ != nullptr) epoch_user_->on_ended(failure_);
    });
  if (failure_handler_) loop_.defer([handler = std::exchange(failure_handler_, nullptr), reason = failure_] { handler(reason); });
}

void World::send_end(Session& session) {
  // Who calls something else than the native ranks is told so, since it would do the same again if it came back.
  const bool of_mismatch = !options_.is_guest(session.peer()) || session.peer() == mismatch_.rank();
  const wire::Abort end = wire::to_abort(of_mismatch && !mismatch_.ok() ? mismatch_ : failure_);
  // A guest's world is one epoch.
  if (options_.elastic && !options_.is_guest(session.peer()))
    return ringlet::send_control(session, wire::Revoke{options_.epoch, end.code, end.rank, end.text});
  ringlet::send_control(session, end);
  session.finish_sending();
}

void World::end_operations(const Status& status) {
  peers_.for_each_session([this](Session& session) {
    session.drop_sources();
    if (options_.elastic)
      session.discard_frame_of_operation();
    else
      session.discard_received();
  });
  deadlines_.stop();
  delays_.stop();
  groups_.fail_all(status);
}

void World::close(std::function<void()> on_closed) {
  RINGLET_CHECK(!closing_);
  // Operations that have ended since the last tick are reported while the handler is still called.
  if (failure_.ok()) delays_.on_tick(loop_.now());
  closing_ = true;
  surveys_.cancel_all();
  on_closed_ = std::move(on_closed);
  close_start_ = loop_.now();
  failure_handler_ = nullptr;
  epoch_user_ = nullptr;
  const bool orderly = failure_.ok() && !busy();
  if (orderly) {
    failure_ = {Errc::cancelled, "the group was closed"};
  } else if (failure_.ok()) {
    const Status own{Errc::cancelled, "rank " + std::to_string(options_.rank) + " closed the group while operations were pending",
                     options_.rank};
    end_operations(own);
    fail({Errc::peer_lost, own.text(), options_.rank});
    failure_ = own;  // the others have lost a rank, this one has not
    breaks_off_ = true;
  }
  if (orderly || options_.elastic) say_goodbye();
  finish_closing_if_done();
}

void World::say_goodbye() {
  FrameHeader goodbye;
  goodbye.kind = FrameKind::goodbye;
  peers_.for_each_session([&](Session& session) {
    if (session.closed()) return;
    session.send_owned(goodbye, {});
    session.discard_received();
    session.finish_sending();
  });
}

void World::finish_closing_if_done() {
  if (!closing_ || !on_closed_) return;
  bool open = false;
  peers_.for_each_session([&](const Session& session) { open |= !session.closed() && !session.receive_has_ended(); });
  if (!open) finish_closing();
}

void World::finish_closing() {
  if (!on_closed_) return;
  if (tick_timer_ != 0) loop_.cancel(std::exchange(tick_timer_, 0));
  loop_.defer([this, on_closed = std::exchange(on_closed_, nullptr)] {
    peers_.for_each_session([](Session& session) { session.close(); });
    on_closed();
  });
}

/// A peer ends its direction once it has read the goodbye, and with it all that was sent before. Closing a link earlier could destroy what
/// is still on its way over a slow network.
bool World::has_waited_enough(Instant now) const {
  if (now - close_start_ < options_.close_timeout) return false;
  if (breaks_off_ || failure_.code() != Errc::cancelled || now - close_start_ >= options_.operation_timeout) return true;
  bool reads = false;
  peers_.for_each_session([&](const Session& session) {
    reads |= !session.closed() && !session.receive_has_ended() && now - session.last_sign_of_life() < options_.heartbeat_timeout;
  });
  return !reads;
}

// --- time ---

void World::schedule_tick() {
  tick_timer_ = loop_.after(kTick, [this] {
    tick_timer_ = 0;
    tick();
  });
}

void World::tick() {
  const Instant now = loop_.now();
  if (closing_) return has_waited_enough(now) ? finish_closing() : schedule_tick();
  if (failure_.ok() || epoch_user_ != nullptr) check_heartbeats(now);
  if (failure_.ok()) deadlines_.on_tick(now);
  surveys_.on_tick(now);
  if (kCanTrace && failure_.ok()) clock_.on_tick(now);
  if (failure_.ok()) delays_.on_tick(now);
  if (failure_.ok()) parts_.on_tick(now);
  schedule_tick();
}

void World::check_heartbeats(Instant now) {
  for (Status silent = heartbeats_.on_tick(now); !silent.ok(); silent = heartbeats_.on_tick(now)) {
    lose(silent.rank(), silent);
    if (epoch_user_ == nullptr) return;
  }
}

}  // namespace ringlet
