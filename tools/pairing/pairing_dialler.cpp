#include "tools/pairing/pairing_dialler.hpp"

#include <utility>

namespace ringlet::pairing {

namespace {

constexpr Duration kPatienceToDial = Duration::seconds(3);
constexpr Duration kPatience = Duration::seconds(15);

}  // namespace

PairingDialler::PairingDialler(UvLoop& loop, std::vector<Address> addresses, NewcomerSession& session)
    : loop_(loop), network_(loop), addresses_(std::move(addresses)), session_(session) {
  dial_next();
}

PairingDialler::~PairingDialler() { loop_.cancel(timer_); }

void PairingDialler::dial_next() {
  const Address& address = addresses_[next_++];
  network_.dial(address, kPatienceToDial, [this](Result<std::unique_ptr<Link>> link) {
    if (link.ok()) return start(std::move(link).value());
    if (next_ < addresses_.size()) return dial_next();
    fail(link.status().code(), link.status().text());
  });
}

void PairingDialler::start(std::unique_ptr<Link> link) {
  link_ = std::make_unique<ByteLink>(
      std::move(link), [this](ConstBytes bytes) { on_bytes(bytes); },
      [this] {
        fail(Errc::peer_lost,
             "the other machine ended the connection: it shows no code now, or waits after a wrong one; run this again when it shows one");
      });
  timer_ = loop_.after(kPatience, [this] { fail(Errc::timed_out, "the other machine did not answer in time"); });
  link_->send(session_.take_outgoing());
}

void PairingDialler::on_bytes(ConstBytes bytes) {
  if (settled_) return;
  session_.receive(bytes);
  link_->send(session_.take_outgoing());
  settled_ = session_.stage() != NewcomerSession::Stage::waits;
}

void PairingDialler::fail(Errc code, std::string text) {
  closed_ = true;
  if (std::exchange(settled_, true)) return;
  status_ = {code, std::move(text)};
}

void PairingDialler::finish() {
  if (!link_ || closed_) return;
  link_->send(session_.take_outgoing());
  link_->finish();
  loop_.cancel(timer_);
  timer_ = loop_.after(kFarewell, [this] { closed_ = true; });
}

}  // namespace ringlet::pairing
