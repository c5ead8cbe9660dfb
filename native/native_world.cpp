#include "native/native_world.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "core/base/refuse.hpp"
#include "native/open_worlds.hpp"
#include "native/presence.hpp"
#include "native/shared_group.hpp"
#include "native/tell.hpp"
#include "native/this_process.hpp"

namespace ringlet::native {

namespace {

/// A machine that is there answers at once.
constexpr Duration kLookTimeout = Duration::seconds(2);
constexpr Duration kStopPatience = Duration::seconds(1);
constexpr Duration kStopPause = Duration::milliseconds(5);

/// The file is named after the rank, which is known now. The job's number is the one of rank 0's first world.
WorldConfig with_trace(WorldConfig config, WorldEntry entry) {
  if (config.options.job == 0) config.options.job = random_world_id();
  config.trace.rank = config.options.rank;
  config.trace.joined_in_epoch = entry == WorldEntry::join ? config.options.epoch : 0;
  config.options.session.trace = open_trace(config.trace);
  return config;
}

}  // namespace

void MeetingStop::stop(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(why_, why)) return;
  if (fail_) fail_(why);
}

void MeetingStop::arm(std::function<void(const Status&)> fail) {
  const std::lock_guard lock(mutex_);
  fail_ = std::move(fail);
  if (why_) fail_(*why_);
}

/// A MeetingStop, if there is one, that is disarmed at the end of the scope.
class NativeWorld::StopSwitch {
 public:
  explicit StopSwitch(MeetingStop* stop) : stop_(stop) {}
  ~StopSwitch() { disarm(); }
  StopSwitch(const StopSwitch&) = delete;
  StopSwitch& operator=(const StopSwitch&) = delete;
  void arm(std::function<void(const Status&)> fail) const {
    if (stop_ != nullptr) stop_->arm(std::move(fail));
  }
  void disarm() const {
    if (stop_ != nullptr) stop_->disarm();
  }

 private:
  MeetingStop* const stop_;
};

void MeetingStop::disarm() {
  const std::lock_guard lock(mutex_);
  fail_ = nullptr;
}

NativeWorld::NativeWorld(const WorldConfig& config, const WorldStart& start, MeetingSockets sockets)
    : config_(with_trace(config, start.entry)),
      start_(start),
      driver_(config.options.size > 1),
      first_epoch_(config.options.epoch),
      is_in_(start.entry != WorldEntry::join) {
  auto page = read_page(sockets.web.page);
  try {
    open(std::move(page));
    if (options_.size > 1)
      meet(std::move(sockets));
    else if (elastic())
      driver_.run([&] { begin_epochs(); });
    if (elastic() && start.entry == WorldEntry::first) {
      door()->open();
      enter({});
    }
    if (options_.session.trace != nullptr) driver_.run([&] { trace_world(core().options(), lineage(), {}); });
    if (options_.size > 1) add_open_world(*this);
  } catch (...) {
    close();
    throw;
  }
}

NativeWorld::~NativeWorld() {
  if (options_.size > 1) remove_open_world(*this);
  close();
}

void NativeWorld::enter(const std::optional<GroupChange>& change) {
  start_.membership->enter({options_.epoch, start_.lineage, options_.rank, options_.size, to_string(door()->address()), change});
}

void NativeWorld::enter_by_joining(std::uint32_t epoch) {
  driver_.run([&] {
    first_epoch_ = epoch;
    is_in_ = true;
    const ringlet::World& world = epochs_->world();
    const WorldOptions& now = world.options();
    start_.membership->enter({now.epoch, lineage(), now.rank, now.size, to_string(door()->address())});
    serve_guests(world);
  });
}

void NativeWorld::open(web::PageBundle page) {
  driver_.run([&] {
    network_ = std::make_unique<UvNetwork>(driver_.loop());
    authenticator_ = std::make_unique<TokenAuthenticator>(config_.token, config_.encrypts(), config_.ciphers);
    if (config_.peer_memory) peer_memory_ = local::open_peer_memory();
    shortcut_ = std::make_unique<local::MemoryShortcut>(
        driver_.loop(), peer_memory_.get(), [this](Bytes out) { authenticator_->fill_random(out); }, &driver_.loop(),
        std::thread::hardware_concurrency());
    incoming_ = std::make_unique<IncomingLinks>(driver_.loop(), *authenticator_);
    incoming_->set_shortcut(shortcut_.get());
    if (options_.guests > 0) web_front_ = open_web_door(driver_.loop(), *incoming_, std::move(page), config_.web);
    core_ = std::make_unique<ringlet::World>(driver_.loop(), options_);
    first_ = core_.get();
    // All ranks that meet are in this epoch, whichever it is.
    for (int rank = 0; rank < options_.size; ++rank) core_->hear(rank);
    prepare(*core_);
  });
}

void NativeWorld::prepare(ringlet::World& world) {
  serve_guests(world);
  world.set_identity(this_process());
  world.set_delay_handler(config_.on_delay ? config_.on_delay : [](const Delay& delay) { tell(delay.rank, delay.text); });
}

void NativeWorld::serve_guests(const ringlet::World& world) {
  if (elastic() && is_in_ && world.options().rank == 0) door()->serve_page();
}

void NativeWorld::watch_parts(ringlet::World& world) {
  if (!world.options().follows_speeds()) return parts_watch_.reset();
  const auto say = [rank = world.options().rank](const std::string& text) { tell(rank, text); };
  parts_watch_ = std::make_unique<PartsWatch>(driver_.loop(), world, config_.on_parts ? config_.on_parts : say, config_.parts_watch);
}

void NativeWorld::meet(MeetingSockets sockets) {
  DoneFlag done;
  Status outcome;
  const auto presence = std::make_shared<PresenceReport>(std::move(sockets.web.presence));
  MeetingOptions options = config_.meeting;
  if (elastic()) options.door = door()->address();
  options.on_waiting = [rank = options_.rank](const std::string& text) { tell(rank, text); };
  const StopSwitch stop(start_.stop.get());
  options.on_guests = [presence](const std::vector<std::string>& names) { presence->tell(names); };
  Interruption interruption;
  // A meeting that can be stopped goes on in the background.
  if (!start_.stop) interruption.is_wanted = config_.interrupted;
  interruption.end = [this, &done] {
    if (done.is_set()) return;
    const Status why{Errc::cancelled, "rank " + std::to_string(options_.rank) + " was interrupted while the ranks met", options_.rank};
    // It does not wait, as other reasons do, until rank 0 can be told.
    end_meeting(why, driver_.loop().now() + kStopPatience * -1);
  };
  driver_.run_until(
      [&] {
        options.shortcut = shortcut_.get();
        meeting_ = std::make_unique<Meeting>(driver_.loop(), *network_, *authenticator_, incoming_.get(), *core_, std::move(options));
        const auto on_met = [&](const Status& status) {
          outcome = status;
          driver_.set(done);
        };
        if (sockets.listener) {
          auto adopted = network_->adopt_listener(std::move(sockets.listener), incoming_->acceptor());
          if (!adopted.ok()) return on_met(adopted.status());
          meeting_->use_listener(std::move(adopted).value());
        }
        meeting_->start(on_met);
        stop.arm([this](const Status& why) { driver_.loop().post([this, why] { end_meeting(why, driver_.loop().now()); }); });
      },
      done, interruption);
  stop.disarm();
  driver_.run([&] {
    if (stop_timer_ != 0) driver_.loop().cancel(std::exchange(stop_timer_, 0));
    presence->end();
    world_id_ = meeting_->world_id();
    if (outcome.ok() && elastic()) begin_epochs();
    if (outcome.ok()) watch_parts(core());
    if (outcome.ok() && config_.status) open_status(core());
    if (!outcome.ok())
      note_end(outcome);
    else if (!elastic())
      core_->set_failure_handler([this](const Status& why) { note_end(why); });
    // Where there are guests, the meeting stays, to tell ranks that come too late that the group is complete.
    if (options_.guests == 0) meeting_.reset();
  });
  throw_if_failed(outcome);
}

/// Whoever started this rank can tell by it which rank failed first.
void NativeWorld::note_end(const Status& why) {
  if (start_.membership && why.code() == Errc::peer_lost && why.rank() != options_.rank) start_.membership->end_by_loss(why.rank());
}

/// The others learn why over the link with rank 0, so this rank waits a moment until it has one.
void NativeWorld::end_meeting(const Status& why, Instant since) {
  if (!core_ || !meeting_) return;
  const bool waits = options_.rank != 0 && !core_->has_session(0) && driver_.loop().now() - since < kStopPatience;
  if (!waits) return core_->fail(why);
  stop_timer_ = driver_.loop().after(kStopPause, [this, why, since] {
    stop_timer_ = 0;
    end_meeting(why, since);
  });
}

void NativeWorld::note_doors() {
  std::vector<Address> reached;
  for (int rank = 0; rank < options_.natives(); ++rank) {
    const Address& door = core_->door(rank);
    if (rank == options_.rank || door.port == 0) continue;
    first_doors_.push_back(door);
    if (!core_->has_session(rank)) continue;
    const auto at = parse_address(core_->link_with(rank).peer_name);
    if (at.ok()) reached.push_back({at.value().host, door.port});
  }
  first_doors_.insert(first_doors_.end(), reached.begin(), reached.end());
}

void NativeWorld::begin_epochs() {
  if (meeting_) {
    addresses_ = meeting_->listening_addresses();
    listeners_ = std::make_unique<Listeners>(meeting_->take_listeners());
    meeting_.reset();
  }
  note_doors();
  EpochsOptions options;
  options.on_split = config_.on_split;
  options.lineage = start_.lineage;
  options.prepare = [this](ringlet::World& world) {
    prepare(world);
    watch_parts(world);
    expect_guests_after(epochs_->world());
    if (status_) open_status(world);
  };
  options.on_succession = [this](const ringlet::World& before, const Succession& succession) { follow(before, succession); };
  options.look_for_proof = [this](int rank, std::function<void(bool)> done) {
    const auto index = static_cast<std::size_t>(rank);
    network_->look(addresses_[index], kLookTimeout,
                   [this, index, done = std::move(done)](bool refused) { done(refused && !closed_ports_[index]); });
  };
  if (options_.size > 1) find_closed_ports();
  epochs_ = std::make_unique<Epochs>(driver_.loop(), std::move(core_), std::move(options));
}

void NativeWorld::expect_guests_after(const ringlet::World& world) {
  if (world.options().guests > 0) door()->expect_guests(count_returning_guests(world));
}

void NativeWorld::follow(const ringlet::World& before, const Succession& succession) {
  const WorldOptions& now = succession.world->options();
  GroupChange change;
  for (int rank = 0; rank < before.options().size; ++rank)
    if (std::find(succession.members.begin(), succession.members.end(), rank) == succession.members.end()) change.lost.push_back(rank);
  if (now.session.trace != nullptr) trace_world(now, succession.lineage, change.lost);
  change.cause = before.failure().text();
  change.pause = succession.took;
  if (is_in_)
    start_.membership->enter({now.epoch, succession.lineage, now.rank, now.size, to_string(door()->address()), std::move(change)});
}

void NativeWorld::trace_world(const WorldOptions& now, std::uint64_t lineage, std::vector<int> lost) const {
  const bool joined = start_.entry == WorldEntry::join && now.epoch == options_.epoch;
  if (Recorder* trace = recorder()) trace->enter({now.job, now.epoch, lineage, now.rank, now.size, joined, std::move(lost)});
}

/// The refusal of a port that a firewall closes says nothing of the process behind it. The lower ranks' ports have answered this rank when
/// it dialled them.
void NativeWorld::find_closed_ports() {
  closed_ports_.assign(addresses_.size(), false);
  const auto refused = std::make_shared<std::vector<int>>();
  for (int rank = options_.rank + 1; rank < options_.natives(); ++rank)
    network_->look(addresses_[static_cast<std::size_t>(rank)], kLookTimeout, [refused, rank](bool is_refused) {
      if (is_refused) refused->push_back(rank);
    });
  port_timer_ = driver_.loop().after(kLookTimeout * 2, [this, refused] {
    port_timer_ = 0;
    // Where the rank has been lost since, its port was refused for that.
    for (const int rank : *refused)
      closed_ports_[static_cast<std::size_t>(rank)] =
          epochs_->world().options().epoch == options_.epoch && epochs_->world().is_linked(rank);
  });
}

std::shared_ptr<SharedGroup> NativeWorld::group_of(const std::shared_ptr<NativeWorld>& self, ringlet::World& world) {
  const std::lock_guard lock(self->groups_mutex_);
  const std::uint32_t epoch = world.options().epoch;
  const auto [known, is_new] = self->groups_.try_emplace(epoch);
  if (!is_new)
    if (auto group = known->second.lock()) return group;
  if (!is_new)
    refuse("this rank has left the world of epoch " + std::to_string(epoch) + " already: the group that reform() returned is gone");
  const auto group = std::make_shared<SharedGroup>(self, world, world.group());
  known->second = group;
  return group;
}

void NativeWorld::open_status(ringlet::World& world) {
  status_.reset();
  status_ = std::make_unique<StatusSocket>(driver_.loop(), world, world_id_, elastic() ? start_.membership : nullptr);
  const Status opened = status_->open();
  if (opened.ok()) return;
  status_.reset();
  tell(options_.rank, "`ringlet status` cannot ask this rank: " + opened.text() + "; RINGLET_STATUS=off makes it not try");
}

void NativeWorld::leave() noexcept {
  if (leaving_.exchange(true)) return;
  try {
    driver_.run_in_background([this] {
      status_.reset();
      parts_watch_.reset();
      const auto on_closed = [this] {
        driver_.background_done();
        driver_.set(left_);
      };
      epochs_ ? epochs_->close(on_closed) : core_->close(on_closed);
    });
  } catch (...) {
    driver_.give_up(std::current_exception());
  }
}

void NativeWorld::close() noexcept {
  try {
    if (core_ || epochs_) say_goodbye();
    driver_.run([this] {
      if (port_timer_ != 0) driver_.loop().cancel(port_timer_);
    });
  } catch (...) {
    driver_.give_up(std::current_exception());
  }
  driver_.destroy(status_, meeting_, listeners_, web_front_, incoming_, shortcut_, parts_watch_, core_, epochs_, network_, authenticator_,
                  peer_memory_);
}

void NativeWorld::say_goodbye() {
  if (leaving_) {
    driver_.wait(left_, std::nullopt);
    return driver_.check();
  }
  DoneFlag closed;
  driver_.run_until(
      [&] {
        status_.reset();
        parts_watch_.reset();
        const auto on_closed = [this, &closed] { driver_.set(closed); };
        epochs_ ? epochs_->close(on_closed) : core_->close(on_closed);
      },
      closed);
  if (options_.guests > 0) {
    // Guests that have not left yet need this rank's relays.
    DoneFlag ended;
    driver_.run_until([&] { incoming_->when_relays_end(options_.close_timeout, [this, &ended] { driver_.set(ended); }); }, ended);
  }
}

}  // namespace ringlet::native
