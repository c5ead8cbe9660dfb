#pragma once

#include <optional>

#include "tools/pairing/conversation.hpp"
#include "tools/pairing/pairing_code.hpp"
#include "tools/pairing/session_keys.hpp"
#include "tools/pairing/srp.hpp"

namespace ringlet::pairing {

/// One conversation on the side that has the token. It tests one guess of the code, and gives the token away if the guess is right.
class HostSession final : public Conversation {
 public:
  enum class Stage : std::uint8_t {
    waits,       // for the newcomer's next message
    refused,     // the newcomer guessed wrong, or tried to continue without the code
    broken,      // ended before any guess
    handed_out,  // the token is being sent; waits for the receipt
    confirmed,   // the newcomer has saved the token
    unconfirmed  // ended without a receipt after the token was sent
  };

  /// `host` is this machine. `code` and `token` must outlive this object and must not change.
  HostSession(std::string group, PairedMachine host, const Secret& code, const Secret& token, const FillRandom& random);

  Stage stage() const noexcept { return stage_; }
  /// Returns the newcomer's name as it gave it. Its key is there in the stage `confirmed`.
  const PairedMachine& newcomer() const noexcept { return newcomer_; }

 private:
  void on_message(const Message& message, std::string_view bytes) override;
  void on_nonsense() override;
  void on_hello(const Message& message, std::string_view bytes);
  void on_answer(const Message& message);
  void on_receipt(const Message& message);
  void refuse_code();
  void finish(Stage stage);

  const std::string group_;
  const PairedMachine host_;
  const Secret& code_;
  const Secret& token_;
  const std::string salt_;
  PairedMachine newcomer_;
  std::optional<SrpHost> srp_;
  std::optional<SessionKeys> keys_;
  std::string sealed_;  // the token, then this machine
  Stage stage_ = Stage::waits;
};

}  // namespace ringlet::pairing
