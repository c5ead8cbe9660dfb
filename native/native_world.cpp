#include "native/native_world.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "native/presence.hpp"
#include "native/this_process.hpp"

namespace ringlet::native {

namespace {

/// The line is written by one call, so that lines of several ranks do not mix.
void tell(int rank, const std::string& text) {
  const std::string line = "ringlet: rank " + std::to_string(rank) + ": " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

NativeWorld::NativeWorld(const WorldConfig& config) : options_(config.options), driver_(config.options.size > 1) {
  auto page = read_page(config.web);
  try {
    open(config, std::move(page));
    if (options_.size > 1) meet(config);
  } catch (...) {
    close();
    throw;
  }
}

NativeWorld::~NativeWorld() { close(); }

void NativeWorld::open(const WorldConfig& config, web::PageBundle page) {
  driver_.run([&] {
    network_ = std::make_unique<UvNetwork>(driver_.loop());
    authenticator_ = std::make_unique<TokenAuthenticator>(config.token, config.encrypt.value_or(!config.token.empty()));
    if (config.peer_memory) peer_memory_ = local::open_peer_memory();
    shortcut_ = std::make_unique<local::MemoryShortcut>(driver_.loop(), peer_memory_.get(),
                                                        [this](Bytes out) { authenticator_->fill_random(out); });
    incoming_ = std::make_unique<IncomingLinks>(driver_.loop(), *authenticator_);
    incoming_->set_shortcut(shortcut_.get());
    if (options_.guests > 0) web_front_ = open_web_door(driver_.loop(), *incoming_, std::move(page), config.web);
    core_ = std::make_unique<ringlet::World>(driver_.loop(), options_);
    core_->set_identity(this_process());
    core_->set_delay_handler(config.on_delay ? config.on_delay : [](const Delay& delay) { tell(delay.rank, delay.text); });
  });
}

void NativeWorld::meet(const WorldConfig& config) {
  DoneFlag done;
  Status outcome;
  const auto presence = std::make_shared<PresenceReport>(config.web.presence_descriptor);
  MeetingOptions options = config.meeting;
  options.on_waiting = [rank = options_.rank](const std::string& text) { tell(rank, text); };
  options.on_guests = [presence](const std::vector<std::string>& names) { presence->tell(names); };
  driver_.run_until(
      [&] {
        options.shortcut = shortcut_.get();
        meeting_ = std::make_unique<Meeting>(driver_.loop(), *network_, *authenticator_, incoming_.get(), *core_, std::move(options));
        const auto on_met = [&](const Status& status) {
          outcome = status;
          driver_.set(done);
        };
        if (config.listening_descriptor) {
          auto listener = network_->adopt_listener(*config.listening_descriptor, incoming_->acceptor());
          if (!listener.ok()) {
            ::close(*config.listening_descriptor);
            return on_met(listener.status());
          }
          meeting_->use_listener(std::move(listener).value());
        }
        meeting_->start(on_met);
      },
      done);
  driver_.run([&] {
    presence->end();
    if (outcome.ok() && config.status) open_status(meeting_->world_id());
    // Where there are guests, the meeting stays, to tell ranks that come too late that the group is complete.
    if (options_.guests == 0) meeting_.reset();
  });
  throw_if_failed(outcome);
}

void NativeWorld::open_status(std::uint64_t world_id) {
  status_ = std::make_unique<StatusSocket>(driver_.loop(), *core_, world_id);
  const Status opened = status_->open();
  if (opened.ok()) return;
  status_.reset();
  tell(options_.rank, "`ringlet status` cannot ask this rank: " + opened.text() + "; RINGLET_STATUS=off makes it not try");
}

void NativeWorld::close() noexcept {
  try {
    if (core_) say_goodbye();
    driver_.run([this] {
      meeting_.reset();
      web_front_.reset();
      incoming_.reset();
      shortcut_.reset();
      core_.reset();
      network_.reset();
    });
  } catch (...) {
    driver_.give_up(std::current_exception());
    leak();
  }
}

/// After a failure in their midst they are in any state, so they are not destroyed.
void NativeWorld::leak() noexcept {
  const auto release = [](auto&... owners) { ((void)owners.release(), ...); };
  release(status_, meeting_, web_front_, incoming_, shortcut_, core_, network_, authenticator_, peer_memory_);
}

void NativeWorld::say_goodbye() {
  DoneFlag closed;
  driver_.run_until(
      [&] {
        status_.reset();
        core_->close([this, &closed] { driver_.set(closed); });
      },
      closed);
  if (options_.guests > 0) {
    // Guests that have not left yet need this rank's relays.
    DoneFlag ended;
    driver_.run_until([&] { incoming_->when_relays_end(options_.close_timeout, [this, &ended] { driver_.set(ended); }); }, ended);
  }
}

}  // namespace ringlet::native
