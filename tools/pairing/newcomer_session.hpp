#pragma once

#include <optional>

#include "tools/pairing/conversation.hpp"
#include "tools/pairing/secret.hpp"
#include "tools/pairing/session_keys.hpp"

namespace ringlet::pairing {

/// The conversation on the side that was told the code. It proves that it knows the code before the other side does. A host without the
/// code learns from the proof only whether one guess of its own was right.
class NewcomerSession final : public Conversation {
 public:
  enum class Stage : std::uint8_t {
    waits,      // for the host's next message
    delivered,  // the token has come; confirm() follows once it is saved
    confirmed,
    wrong_code,   // the host rejects the code
    unproved,     // the other side does not know the code, or someone is between
    other_group,  // the host pairs for another group
    broken        // a message was not of this protocol
  };

  /// Sends the first message. `newcomer` is this machine. `code` must outlive this object.
  NewcomerSession(const std::string& group, PairedMachine newcomer, const Secret& code);

  Stage stage() const noexcept { return stage_; }
  /// Returns the host's name as it gave it. Its key is there from the stage `delivered` on.
  const PairedMachine& host() const noexcept { return host_; }
  /// Returns the token. Valid in the stage `delivered`.
  const Secret& token() const noexcept { return token_; }
  /// Tells the host that the token is saved.
  void confirm();

 private:
  void on_message(const Message& message, std::string_view bytes) override;
  void on_nonsense() override { finish(Stage::broken); }
  void on_challenge(const Message& message, std::string_view bytes);
  void on_delivery(const Message& message);
  void on_refusal(const Message& message);
  void finish(Stage stage);

  const PairedMachine newcomer_;
  const Secret& code_;
  PairedMachine host_;
  std::optional<SessionKeys> keys_;
  Secret token_;
  std::string sealed_;  // the token, then the host
  Stage stage_ = Stage::waits;
};

}  // namespace ringlet::pairing
