#include "tools/pairing/newcomer_session.hpp"

#include <utility>

#include "tools/pairing/srp.hpp"

namespace ringlet::pairing {

NewcomerSession::NewcomerSession(const std::string& group, PairedMachine newcomer, const Secret& code)
    : newcomer_(std::move(newcomer)), code_(code) {
  Message hello{Message::Kind::hello};
  hello.group = group;
  hello.name = newcomer_.name;
  note(say(hello));
}

void NewcomerSession::on_message(const Message& message, std::string_view bytes) {
  if (stage_ != Stage::waits) return on_nonsense();
  if (message.kind == Message::Kind::challenge && !keys_) return on_challenge(message, bytes);
  if (message.kind == Message::Kind::delivery && keys_) return on_delivery(message);
  if (message.kind == Message::Kind::refusal) return on_refusal(message);
  on_nonsense();
}

void NewcomerSession::on_challenge(const Message& message, std::string_view bytes) {
  if (message.name.empty() || message.salt.empty() || message.number.empty()) return on_nonsense();
  host_.name = message.name;
  note(bytes);
  const auto agreed = answer_srp(code_, message.salt, message.number);
  if (!agreed) return finish(Stage::unproved);
  note(agreed->number);
  keys_.emplace(agreed->shared, transcript());
  Message answer{Message::Kind::answer};
  answer.number = agreed->number;
  answer.proof = keys_->newcomer_proof();
  say(answer);
}

void NewcomerSession::on_delivery(const Message& message) {
  if (!same_proof(message.proof, keys_->host_proof())) return finish(Stage::unproved);
  auto token = keys_->open(message.sealed_token);
  auto host = keys_->open_host(message.sealed_machine, host_.name);
  if (!token || !host) return finish(Stage::unproved);
  token_ = std::move(*token);
  host_ = std::move(*host);
  sealed_ = message.sealed_token + message.sealed_machine;
  stage_ = Stage::delivered;
}

void NewcomerSession::on_refusal(const Message& message) {
  if (message.reason == Message::Reason::other_group) return finish(Stage::other_group);
  finish(message.reason == Message::Reason::wrong_code && keys_ ? Stage::wrong_code : Stage::broken);
}

void NewcomerSession::confirm() {
  Message receipt{Message::Kind::receipt};
  receipt.sealed_machine = keys_->seal_newcomer(newcomer_);
  receipt.proof = keys_->receipt_proof(sealed_ + receipt.sealed_machine);
  say(receipt);
  finish(Stage::confirmed);
}

void NewcomerSession::finish(Stage stage) {
  stage_ = stage;
  end();
}

}  // namespace ringlet::pairing
