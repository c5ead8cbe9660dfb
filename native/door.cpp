#include "native/door.hpp"

#include <unistd.h>

#include <ringlet/error.hpp>
#include <utility>

namespace ringlet::native {

Door::Door(const DoorOptions& options, const std::string& token, bool encrypt) : driver_(true) {
  Status status;
  driver_.run([&] {
    network_ = std::make_unique<UvNetwork>(driver_.loop());
    authenticator_ = std::make_unique<TokenAuthenticator>(token, encrypt);
    incoming_ = std::make_unique<IncomingLinks>(driver_.loop(), *authenticator_);
    knocks_ = std::make_unique<Knocks>(driver_.loop(), SessionOptions{}, [this](std::size_t count) { waiting_ = static_cast<int>(count); });
    incoming_->set_on_link([this](std::unique_ptr<Link> link) { knocks_->receive(std::move(link)); });
    listeners_ = std::make_unique<Listeners>(*network_);
    if (options.descriptor) {
      auto listener = network_->adopt_listener(*options.descriptor, incoming_->acceptor());
      status = listener.status();
      if (!listener.ok()) return void(::close(*options.descriptor));
      listeners_->adopt(std::move(listener).value());
    } else {
      const Address first{options.hosts.front(), options.port};
      const std::vector<std::string> others(options.hosts.begin() + 1, options.hosts.end());
      status = listeners_->open({&first, 1}, others, options.ports, options.preferred, incoming_->acceptor());
    }
    if (!status.ok()) return;
    Address shown = listeners_->address();
    if (!options.shown_host.empty()) shown.host = options.shown_host;
    address_ = to_string(shown);
  });
  if (!status.ok()) {
    close();
    throw_if_failed({status.code(), "cannot open the door for ranks that join (RINGLET_DOOR): " + status.text()});
  }
  // Without end: the helper thread turns the loop also where a caller asks again and again who waits.
  driver_.run_in_background([] {});
}

Door::~Door() { close(); }

void Door::open() {
  driver_.run([&] { knocks_->open(); });
}

void Door::shut() {
  driver_.run([&] { knocks_->shut(); });
}

int Door::choose(int most, std::function<void(const std::string& name)> on_gone) {
  int count = 0;
  driver_.run([&] { count = static_cast<int>(knocks_->choose(static_cast<std::size_t>(most), std::move(on_gone))); });
  return count;
}

void Door::send_tickets(const wire::Ticket& first) {
  driver_.run([&] { knocks_->send_tickets(first); });
}

void Door::let_go() {
  driver_.run([&] { knocks_->let_go(); });
}

void Door::close() noexcept {
  try {
    driver_.run([this] {
      listeners_.reset();
      incoming_.reset();
      knocks_.reset();
      network_.reset();
    });
  } catch (...) {
    driver_.give_up(std::current_exception());
    // After a failure in their midst they are in any state, so they are not destroyed.
    (void)listeners_.release(), (void)incoming_.release(), (void)knocks_.release(), (void)network_.release(),
        (void)authenticator_.release();
  }
}

}  // namespace ringlet::native
