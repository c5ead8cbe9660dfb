#include "tools/pairing/host_session.hpp"

#include <utility>

namespace ringlet::pairing {

namespace {

std::string random_salt(const FillRandom& random) {
  std::string salt(kSaltBytes, '\0');
  random(std::as_writable_bytes(std::span(salt)));
  return salt;
}

}  // namespace

HostSession::HostSession(std::string group, PairedMachine host, const Secret& code, const Secret& token, const FillRandom& random)
    : group_(std::move(group)), host_(std::move(host)), code_(code), token_(token), salt_(random_salt(random)) {}

void HostSession::on_message(const Message& message, std::string_view bytes) {
  if (message.kind == Message::Kind::hello && !srp_) return on_hello(message, bytes);
  if (message.kind == Message::Kind::answer && srp_ && !keys_) return on_answer(message);
  if (message.kind == Message::Kind::receipt && stage_ == Stage::handed_out) return on_receipt(message);
  on_nonsense();
}

void HostSession::on_nonsense() { finish(stage_ == Stage::handed_out ? Stage::unconfirmed : Stage::broken); }

void HostSession::on_hello(const Message& message, std::string_view bytes) {
  if (message.name.empty()) return on_nonsense();
  if (message.group != group_) {
    Message refusal{Message::Kind::refusal};
    refusal.reason = Message::Reason::other_group;
    say(refusal);
    return finish(Stage::broken);
  }
  newcomer_.name = message.name;
  note(bytes);
  srp_.emplace(code_, salt_);
  Message challenge{Message::Kind::challenge};
  challenge.name = host_.name;
  challenge.salt = salt_;
  challenge.number = srp_->number();
  note(say(challenge));
}

void HostSession::on_answer(const Message& message) {
  if (message.number.empty() || message.proof.empty()) return on_nonsense();
  const auto shared = srp_->agree(message.number);
  if (!shared) return refuse_code();
  note(message.number);
  keys_.emplace(*shared, transcript());
  if (!same_proof(message.proof, keys_->newcomer_proof())) return refuse_code();
  Message delivery{Message::Kind::delivery};
  delivery.proof = keys_->host_proof();
  delivery.sealed_token = keys_->seal(token_);
  delivery.sealed_machine = keys_->seal_host(host_);
  sealed_ = delivery.sealed_token + delivery.sealed_machine;
  say(delivery);
  stage_ = Stage::handed_out;
}

void HostSession::on_receipt(const Message& message) {
  auto newcomer = keys_->open_newcomer(message.sealed_machine, newcomer_.name);
  if (!newcomer || !same_proof(message.proof, keys_->receipt_proof(sealed_ + message.sealed_machine))) return finish(Stage::unconfirmed);
  newcomer_ = std::move(*newcomer);
  finish(Stage::confirmed);
}

void HostSession::refuse_code() {
  Message refusal{Message::Kind::refusal};
  refusal.reason = Message::Reason::wrong_code;
  say(refusal);
  finish(Stage::refused);
}

void HostSession::finish(Stage stage) {
  stage_ = stage;
  end();
}

}  // namespace ringlet::pairing
