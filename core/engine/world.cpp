#include "core/engine/world.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/engine/delay_text.hpp"
#include "core/engine/send_control.hpp"

namespace ringlet {

namespace {

constexpr Duration kTick = Duration::milliseconds(50);
constexpr std::size_t kMaxUnreadAnswers = 64;
// How long a guest waits for word of why a relayed link broke, before it blames the other guest.
constexpr Duration kWordOfRelay = Duration::milliseconds(500);

WorldOptions within_limits(WorldOptions options) {
  RINGLET_CHECK(options.kernels != nullptr && options.size >= 1 && options.rank >= 0 && options.rank < options.size);
  RINGLET_CHECK(options.guests >= 0 && options.guests < options.size);
  constexpr std::size_t kLargestElement = 8;
  options.segment_bytes =
      std::clamp<std::size_t>(options.segment_bytes - options.segment_bytes % kLargestElement, kLargestElement, kMaxDataPayload);
  // With less, no operation could ever begin before its peer's.
  const std::size_t longest_call = EagerWindow::kOperationBytes + max_call_record_bytes(options.size) - kCallRecordBytes;
  options.eager_window_bytes = std::max(options.eager_window_bytes, longest_call);
  options.max_groups = std::max<std::size_t>(options.max_groups, 1);
  options.topology = Topology::of_world(options.size, options.guests, options.leaf_limits);
  return options;
}

}  // namespace

class World::ControlSink final : public GatheringSink {
 public:
  ControlSink(World& world, int peer) : world_(world), peer_(peer) {}
  void frame_ended() override { world_.on_control(peer_, gathered()); }

 private:
  World& world_;
  const int peer_;
};

World::World(EventLoop& loop, const WorldOptions& options)
    : loop_(loop),
      options_(within_limits(options)),
      sessions_(static_cast<std::size_t>(options.size)),
      paths_(static_cast<std::size_t>(options.size)),
      names_(static_cast<std::size_t>(options.size)),
      cut_off_(static_cast<std::size_t>(options.size)),
      groups_(*this, options_.max_groups),
      surveys_(*this),
      deadlines_(*this, groups_, surveys_),
      delays_(*this, groups_, surveys_) {
  group_ = &groups_.create(*groups_.reserve(), Membership::of_world(options.size), options.rank);
  for (int rank = 0; rank < options.size; ++rank) control_sinks_.push_back(std::make_unique<ControlSink>(*this, rank));
  last_tick_ = loop_.now();
  if (options.size > 1) schedule_tick();
}

World::~World() {
  if (tick_timer_ != 0) loop_.cancel(tick_timer_);
  if (word_timer_ != 0) loop_.cancel(word_timer_);
}

std::string World::text_of(int rank) const {
  const std::string& name = names_[static_cast<std::size_t>(rank)];
  return "rank " + std::to_string(rank) + (name.empty() ? "" : " (" + name + ")");
}

Status World::with_name(const Status& status) const {
  const int rank = status.rank();
  if (rank < 0 || rank >= options_.size || rank_name(rank).empty() || status.text().find(rank_name(rank)) != std::string::npos)
    return status;
  return {status.code(), status.text() + "; rank " + std::to_string(rank) + " is " + rank_name(rank), rank};
}

void World::adopt(std::unique_ptr<Session> session, int rank) {
  RINGLET_CHECK(rank >= 0 && rank < options_.size && rank != options_.rank && !has_session(rank));
  session->set_owner(*this);
  session->set_peer(rank);
  sessions_[static_cast<std::size_t>(rank)] = std::move(session);
  if (failure_.ok()) return;
  // A link of a meeting that was lost while it was being dialled.
  sessions_[static_cast<std::size_t>(rank)]->discard_received();
  send_abort(*sessions_[static_cast<std::size_t>(rank)]);
}

void World::adopt(std::unique_ptr<Link> link, int rank) {
  adopt(std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), options_.session), rank);
}

std::unique_ptr<Session> World::replace(std::unique_ptr<Session> session, int rank) {
  auto before = std::move(sessions_[static_cast<std::size_t>(rank)]);
  adopt(std::move(session), rank);
  return before;
}

LinkReport World::link_with(int rank) const {
  const Session& session = *sessions_[static_cast<std::size_t>(rank)];
  const KnownPath& known = paths_[static_cast<std::size_t>(rank)];
  return {session.own_name(), session.peer_name(), session.medium(), known.path, known.dialled};
}

void World::send_control(int rank, const wire::ControlMessage& message) { ringlet::send_control(session_with(rank), message); }

// --- groups ---

void World::set_placement(const Placement& placement, const AlgorithmLimits& limits) {
  options_.placement = placement;
  options_.limits = limits;
  group_->set_placement(placement, limits);
}

void World::split(GroupEngine& parent, std::uint16_t stream, SplitTask task) {
  split_group(groups_, *this, parent, stream, std::move(task));
}

void World::leave(GroupEngine& group) {
  deadlines_.forget(group);
  delays_.forget(group);
  groups_.leave(group);
}

bool World::has_left_world(int rank) const {
  const auto& session = sessions_[static_cast<std::size_t>(rank)];
  return (session && session->goodbye_received()) || cut_off_[static_cast<std::size_t>(rank)];
}

// --- frames ---

PayloadSink* World::on_frame(Session& session, const FrameHeader& header) {
  const int peer = session.peer();
  switch (header.kind) {
    case FrameKind::control: {
      ControlSink& sink = *control_sinks_[static_cast<std::size_t>(peer)];
      sink.begin();
      return &sink;
    }
    case FrameKind::goodbye:
      on_goodbye(peer);
      return nullptr;
    case FrameKind::heartbeat:
      return nullptr;
    default:
      return groups_.on_frame(peer, header);
  }
}

void World::on_control(int peer, ConstBytes payload) {
  const auto message = wire::decode_control(payload);
  if (!message) return fail({Errc::protocol_error, "rank " + std::to_string(peer) + " sent a control message that cannot be read", peer});
  if (const auto* abort = std::get_if<wire::Abort>(&*message)) {
    const Status status = wire::to_status(*abort);
    const bool known = status.rank() >= 0 && status.rank() < options_.size;
    return fail({status.code(), status.text(), known ? status.rank() : -1});
  }
  if (const auto* question = std::get_if<wire::StateQuestion>(&*message)) return on_question(peer, *question);
  if (const auto* state = std::get_if<wire::RankState>(&*message)) return surveys_.on_state(peer, *state);
  // A copy: the handler may take itself away.
  if (const ControlHandler handler = control_handler_) return handler(peer, *message);
  fail({Errc::protocol_error, "rank " + std::to_string(peer) + " sent a control message that belongs to the start of a group", peer});
}

void World::on_question(int peer, const wire::StateQuestion& question) {
  // A rank that asks faster than it reads the answers gets none.
  if (session_with(peer).unsent_owned() < kMaxUnreadAnswers) send_control(peer, state(peer, question));
}

wire::RankState World::state(int peer, const wire::StateQuestion& question) const {
  wire::RankState state = groups_.state(peer, question);
  state.host = identity_.host;
  state.program = identity_.program;
  state.pid = identity_.pid;
  state.links = links();
  for (const auto& session : sessions_) {
    if (!session) continue;
    state.bytes_sent += session->bytes_sent();
    state.bytes_received += session->bytes_received();
  }
  std::vector<Pending> pending;
  if (options_.warn_after > Duration{}) groups_.find_pending({loop_.now().nanoseconds - options_.warn_after.nanoseconds}, pending);
  state.stalled = !pending.empty();
  return state;
}

std::string_view World::links() const {
  std::string_view found = "none";
  for (const auto& session : sessions_) {
    const std::string_view medium = session ? session->medium() : std::string_view();
    if (medium.empty() || medium == found) continue;
    found = found == "none" ? medium : "mixed";
  }
  return found;
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
  groups_.on_left_world(peer);
}

void World::on_session_failed(Session& session, const Status& status) {
  const int peer = session.peer();
  if (status.code() == Errc::protocol_error)
    return fail({Errc::protocol_error, text_of(peer) + " broke the protocol: " + status.text(), peer});
  const Status lost{Errc::peer_lost, "lost " + text_of(peer) + ": " + status.text(), peer};
  if (relayed(peer) && failure_.ok()) return on_relayed_link_lost(peer, lost);
  fail(lost);
  finish_closing_if_done();
}

/// The relay may be to blame as well as the peer: the break of its own link, or an Abort from one who knows better, says which. Where the
/// relay has taken leave, the peer is out of reach, and who needs it will hear so.
void World::on_relayed_link_lost(int peer, const Status& status) {
  const int relay = options_.relay_of(options_.rank, peer);
  if (has_left_world(relay)) {
    cut_off_[static_cast<std::size_t>(peer)] = true;
    sessions_[static_cast<std::size_t>(peer)]->close();
    return groups_.on_left_world(peer);
  }
  if (word_timer_ != 0) return;
  word_timer_ = loop_.after(kWordOfRelay, [this, status] {
    word_timer_ = 0;
    fail(status);
  });
}

void World::on_session_ended(Session&) { finish_closing_if_done(); }

// --- the end ---

void World::fail(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = with_name(status);
  end_operations(failure_);
  for (auto& session : sessions_)
    if (session && !session->closed() && !session->goodbye_received()) send_abort(*session);
  if (failure_handler_) loop_.defer([handler = std::exchange(failure_handler_, nullptr), reason = failure_] { handler(reason); });
}

void World::send_abort(Session& session) {
  ringlet::send_control(session, wire::to_abort(failure_));
  session.finish_sending();
}

void World::end_operations(const Status& status) {
  for (auto& session : sessions_) {
    if (!session) continue;
    session->drop_sources();
    session->discard_received();
  }
  deadlines_.stop();
  delays_.stop();
  groups_.fail_all(status);
}

void World::close(std::function<void()> on_closed) {
  RINGLET_CHECK(!closing_);
  // What has gone on since the last tick is told while somebody listens.
  if (failure_.ok()) delays_.on_tick(loop_.now());
  closing_ = true;
  surveys_.cancel_all();
  on_closed_ = std::move(on_closed);
  close_deadline_ = loop_.now() + options_.close_timeout;
  failure_handler_ = nullptr;
  if (failure_.ok() && busy()) {
    const std::string text = "rank " + std::to_string(options_.rank) + " closed the group while operations were pending";
    end_operations({Errc::cancelled, text, options_.rank});
    fail({Errc::peer_lost, text, options_.rank});
  } else if (failure_.ok()) {
    failure_ = {Errc::cancelled, "the group was closed"};
    FrameHeader goodbye;
    goodbye.kind = FrameKind::goodbye;
    for (auto& session : sessions_) {
      if (!session || session->closed()) continue;
      session->send_owned(goodbye, {});
      session->discard_received();
      session->finish_sending();
    }
  }
  finish_closing_if_done();
}

void World::finish_closing_if_done() {
  if (!closing_ || !on_closed_) return;
  const bool open = std::any_of(sessions_.begin(), sessions_.end(),
                                [](const auto& session) { return session && !session->closed() && !session->receive_has_ended(); });
  if (!open) finish_closing();
}

void World::finish_closing() {
  if (!on_closed_) return;
  if (tick_timer_ != 0) loop_.cancel(std::exchange(tick_timer_, 0));
  loop_.defer([this, on_closed = std::exchange(on_closed_, nullptr)] {
    for (auto& session : sessions_)
      if (session) session->close();
    on_closed();
  });
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
  if (closing_) {
    if (now >= close_deadline_) return finish_closing();
    return schedule_tick();
  }
  if (failure_.ok()) check_silence(now);
  if (failure_.ok()) deadlines_.on_tick(now);
  surveys_.on_tick(now);
  if (failure_.ok()) delays_.on_tick(now);
  last_tick_ = now;
  schedule_tick();
}

/// A relay that hangs silences the guests behind it, too: it is to be the first that is missed.
Duration World::patience_with(int peer) const {
  const Duration timeout = options_.heartbeat_timeout;
  return relayed(peer) ? timeout + timeout / kHeartbeatsPerTimeout * 2 : timeout;
}

void World::check_silence(Instant now) {
  // If this process itself stood still, what the others sent meanwhile has not been read yet.
  const bool stood_still = now - last_tick_ > options_.heartbeat_timeout / 2;
  for (auto& session : sessions_) {
    if (!session || session->closed() || session->receive_has_ended() || session->goodbye_received()) continue;
    if (stood_still) session->touch_received(now);
    const Duration silence = now - session->last_received();
    if (silence >= patience_with(session->peer())) {
      return fail({Errc::peer_lost,
                   text_of(session->peer()) + " has been silent for " + seconds_text(silence) + "; it hangs, or its network does",
                   session->peer()});
    }
    // What is on its way shows life as well as a heartbeat behind it.
    if (session->has_unsent() || now - session->last_sent() < options_.heartbeat_timeout / kHeartbeatsPerTimeout) continue;
    FrameHeader heartbeat;
    heartbeat.kind = FrameKind::heartbeat;
    session->send_owned(heartbeat, {});
  }
}

}  // namespace ringlet
