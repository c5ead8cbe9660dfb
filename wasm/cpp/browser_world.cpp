#include "wasm/cpp/browser_world.hpp"

#include <algorithm>
#include <utility>

#include "wasm/cpp/imports.hpp"
#include "wasm/cpp/registry.hpp"

namespace ringlet::browser {

WorldOptions world_options() {
  WorldOptions options;
  options.kernels = simd::find("");
  return options;
}

BrowserLoop& BrowserWorld::loop_of_module() { return loop(); }

void BrowserWorld::make_core(const WorldOptions& options) {
  core_ = std::make_unique<World>(loop(), options);
  tell_failures();
}

void BrowserWorld::join(const JoinOptions& options, OnJoined on_joined) {
  options_ = options;
  on_joined_ = std::move(on_joined);
  authenticator_ = std::make_unique<BrowserAuthenticator>(options.token, options.encrypt);
  GuestEntryOptions entry;
  entry.coordinator = options.coordinator;
  entry.name = options.name;
  entry.timeout = options.timeout;
  entry.on_waiting = [handle = handle_] { ringlet_tell_knocking(handle); };
  entry_ = std::make_unique<GuestEntry>(loop(), network_, *authenticator_, entry,
                                        [this](Result<GuestEntry::Entry>& seated) { on_seat(seated); });
}

void BrowserWorld::on_seat(Result<GuestEntry::Entry>& seated) {
  if (!seated.ok()) return finish_joining(seated.status());
  WorldOptions own = world_options();
  own.operation_timeout = options_.operation_timeout;
  GuestEntry::Entry& entry = seated.value();
  // The group takes a guest whose connection with the door closes for one that has gone.
  elastic_ = entry.elastic;
  epoch_ = entry.epoch;
  lineage_ = entry.lineage;
  if (!elastic_) entry_.reset();
  core_ = std::make_unique<World>(loop(), entry.world_options(own));
  core_->adopt(std::move(entry.session), 0);
  tell_seat(static_cast<int>(entry.seat.present));
  // The host may have left the world when it was told of the seat.
  if (closing_) return;
  meet(entry.coordinator, entry.wait());
}

void BrowserWorld::meet(const Address& coordinator, Duration timeout) {
  MeetingOptions meeting;
  meeting.coordinator = coordinator;
  meeting.timeout = timeout;
  meeting.name = options_.name;
  meeting.on_present = [this](int present) { tell_seat(present); };
  meeting_ = std::make_unique<Meeting>(loop(), network_, *authenticator_, nullptr, *core_, std::move(meeting));
  meeting_->start([this](const Status& status) {
    if (!status.ok()) return finish_joining(status);
    tell_failures();
    if (!elastic_) return finish_joining({});
    start_entry_barrier(*core_, [this](const Status& entered) { finish_joining(entered); });
  });
}

void BrowserWorld::tell_seat(int present) {
  const WorldOptions& options = core_->options();
  ringlet_tell_seat(handle_, options.rank, options.size, options.guests, present);
}

void BrowserWorld::finish_joining(const Status& status) {
  loop().defer(alive_.wrap([this] { entry_.reset(); }));
  if (on_joined_) std::exchange(on_joined_, nullptr)(status);
}

void BrowserWorld::tell_failures() {
  core_->set_failure_handler([handle = handle_](const Status& status) {
    ringlet_tell_failed(handle, static_cast<int32_t>(status.code()), status.rank(), status.text().c_str());
  });
}

void BrowserWorld::close(std::function<void()> on_closed) {
  closing_ = true;
  // The host must not be called back inside its own call.
  loop().defer([this, on_closed = std::move(on_closed)]() mutable {
    entry_.reset();
    meeting_.reset();
    finish_joining({Errc::cancelled, "left before all ranks had met"});
    if (core_ != nullptr) return core_->close(std::move(on_closed));
    on_closed();
  });
}

}  // namespace ringlet::browser
