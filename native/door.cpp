#include "native/door.hpp"

#include <fcntl.h>

#include <ringlet/error.hpp>
#include <utility>

#include "transport/uv/socket.hpp"

namespace ringlet::native {

Door::Door(const DoorOptions& options, DoorSockets sockets, const std::string& token, bool encrypt, CipherSet ciphers)
    : driver_(true),
      presence_(std::move(sockets.web.presence)),
      page_socket_(std::move(sockets.page)),
      page_(read_page(sockets.web.page)),
      web_(options.web) {
  Status status;
  driver_.run([&] {
    network_ = std::make_unique<UvNetwork>(driver_.loop());
    authenticator_ = std::make_unique<TokenAuthenticator>(token, encrypt, ciphers);
    incoming_ = std::make_unique<IncomingLinks>(driver_.loop(), *authenticator_);
    Knocks::Callbacks callbacks;
    callbacks.on_waiting = [this](std::size_t count) { waiting_ = static_cast<int>(count); };
    callbacks.on_guests = [this](const std::vector<std::string>& names) {
      if (guests_.exchange(static_cast<int>(names.size())) != static_cast<int>(names.size())) presence_.tell(names);
    };
    knocks_ = std::make_unique<Knocks>(driver_.loop(), SessionOptions{}, std::move(callbacks));
    incoming_->set_on_link([this](std::unique_ptr<Link> link) { knocks_->receive(std::move(link)); });
    listeners_ = std::make_unique<Listeners>(*network_);
    if (sockets.listener) {
      auto listener = network_->adopt_listener(std::move(sockets.listener), incoming_->acceptor());
      status = listener.status();
      if (!listener.ok()) return;
      listeners_->adopt(std::move(listener).value());
    } else {
      const Address first{options.hosts.front(), options.port};
      const std::vector<std::string> others(options.hosts.begin() + 1, options.hosts.end());
      status = listeners_->open({&first, 1}, others, options.ports, options.preferred, incoming_->acceptor());
    }
    if (status.ok() && page_socket_) status = open_page();
    if (!status.ok()) return;
    address_ = listeners_->address();
    if (!options.shown_host.empty()) address_.host = options.shown_host;
  });
  if (!status.ok()) {
    close();
    throw_if_failed({status.code(), "cannot open the door for ranks that join (RINGLET_DOOR): " + status.text()});
  }
  // Without end: the helper thread turns the loop also where a caller asks again and again who waits.
  driver_.run_in_background([] {});
}

Door::~Door() { close(); }

Status Door::open_page() {
  page_port_ = uv::to_address(uv::local_address(page_socket_.get())).port;
  if (page_port_ == 0) return {Errc::invalid_argument, "RINGLET_PAGE_SOCKET_FD is not a socket that listens; it is set by `ringlet serve`"};
  web_.page_port = page_port_;
  return {};
}

void Door::serve_page() {
  if (page_port_ == 0) return;
  Status status;
  driver_.run([&] {
    if (page_listener_) return;
    let_in_web_sockets();
    UniqueFd copy(::fcntl(page_socket_.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy)
      return void(status = {Errc::io_error, "the page cannot be served: no descriptor is left; allow this process more (ulimit -n)"});
    auto listener = network_->adopt_listener(std::move(copy), incoming_->acceptor());
    status = listener.status();
    if (!listener.ok()) return;
    page_listener_ = std::move(listener).value();
  });
  throw_if_failed(status);
}

void Door::let_in_web_sockets() {
  if (!web_front_) web_front_ = open_web_door(driver_.loop(), *incoming_, std::move(page_), web_);
}

void Door::let_in_page_of(std::uint16_t port) {
  driver_.run([&] { web_.page_port = port; });
}

void Door::open() {
  driver_.run([&] {
    let_in_web_sockets();
    knocks_->open();
  });
}

void Door::shut() {
  driver_.run([&] {
    knocks_->shut();
    page_listener_.reset();
  });
}

bool Door::is_open() {
  bool open = false;
  driver_.run([&] { open = knocks_->is_open(); });
  return open;
}

void Door::expect_guests(int count) {
  driver_.run([&] { knocks_->expect_guests(static_cast<std::size_t>(count)); });
}

Knocks::Chosen Door::choose(int most, std::function<void(const std::string& name)> on_gone) {
  Knocks::Chosen chosen;
  driver_.run([&] { chosen = knocks_->choose(static_cast<std::size_t>(most), std::move(on_gone)); });
  return chosen;
}

void Door::send_tickets(const wire::Ticket& first) {
  driver_.run([&] { knocks_->send_tickets(first); });
}

void Door::let_go() {
  driver_.run([&] { knocks_->let_go(); });
}

void Door::end_presence() {
  driver_.run([&] { presence_.end(); });
}

}  // namespace ringlet::native
