#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/authenticator.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

// What an encrypted link carries, each way: records of
//
//   u32, little-endian: the bytes of the content, 1 to kMaxRecordContent, or 0: this direction ends here
//   the content, encrypted
//   the tag over both (16 bytes)
//
// sealed by ChaCha20-Poly1305 under the direction's key; the nonce is the record's number in its direction, from 0. So a record that was
// changed, dropped, repeated, moved, or sent back to where it came from has a wrong tag.

inline constexpr std::size_t kRecordHeadBytes = 4;
inline constexpr std::size_t kMaxRecordContent = 64 << 10;
inline constexpr std::size_t kMaxRecordBytes = kRecordHeadBytes + kMaxRecordContent + Cipher::kTagBytes;

/// A link whose bytes are encrypted on the link below it. No byte is handed on before its record's tag was right. What breaks it:
/// `protocol_error` where a record does not verify, `peer_lost` where the link below ends and this direction has not, also when that cuts
/// between two records.
///
/// What sent() has counted is encrypted and may wait here, one record at most; it is lost where the link is destroyed then. The end of the
/// peer's direction is told, where this side is ending its own, only when that has left. Memory: at most two records for what comes, one
/// for what goes.
class SecureLink final : public Link, private LinkUser {
 public:
  /// `inner`: not one byte of the records was read from it. The ciphers are each of one direction. Starts nothing yet.
  SecureLink(EventLoop& loop, std::unique_ptr<Link> inner, std::unique_ptr<Cipher> sealing, std::unique_ptr<Cipher> opening);
  ~SecureLink() override;
  SecureLink(const SecureLink&) = delete;
  SecureLink& operator=(const SecureLink&) = delete;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  std::string peer_name() const override { return peer_name_; }
  std::string own_name() const override { return own_name_; }
  std::string_view medium() const override { return medium_; }

 private:
  /// Knows whether the user has destroyed this, or it has failed, meanwhile.
  class Watch;

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  bool seal_next();
  void seal(std::span<const ConstBytes> content, std::size_t bytes);
  void finish_if_both_have();
  void deliver_later();
  void deliver();
  // These return false where there is nothing more to hand on now, or this object is lost.
  bool open_next();
  bool open(std::size_t content_bytes);
  bool hand_on();
  bool tell_end();
  /// Puts the user's room for at most so many bytes into room_; returns how many it is. Nothing: wait for a wake, unless it was handed on.
  std::size_t ask_for_room(std::size_t most);
  void fail(Errc code, std::string text);

  EventLoop& loop_;
  std::unique_ptr<Link> inner_;
  const std::string peer_name_, own_name_;
  const std::string_view medium_;
  LinkUser* user_ = nullptr;                                          // null before start() and after the last call
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  // destroyed, or failed

  // sending
  const std::unique_ptr<Cipher> sealing_;
  std::uint64_t sealed_ = 0;  // records
  std::vector<std::byte> outgoing_;
  ConstBytes unsent_;   // of outgoing_
  bool woken_ = false;  // since the user was asked last
  bool finish_requested_ = false;
  bool end_sealed_ = false;

  // receiving
  const std::unique_ptr<Cipher> opening_;
  std::uint64_t opened_ = 0;  // records
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of buffer_: what has come and was not opened
  ConstBytes content_;               // of buffer_, before begin_: opened, and not handed on
  Bytes inner_room_;
  std::array<Bytes, 2> room_{};
  std::size_t room_parts_ = 0;
  bool stopped_ = false;  // the user had no room
  bool delivery_planned_ = false;
  bool peer_ended_ = false;
  bool end_told_ = false;
  bool inner_ended_ = false;
};

}  // namespace ringlet
