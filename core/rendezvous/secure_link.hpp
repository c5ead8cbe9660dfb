#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/ports/authenticator.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

// An encrypted link carries records in each direction, each of
//
//   u32, little-endian: the content's length, 1 to kMaxRecordContent, or 0 where this direction ends
//   the content, encrypted
//   the tag over both (16 bytes)
//
// sealed by the link's cipher under the direction's key; the nonce is the record's number in its direction, from 0. The tag is therefore
// wrong where a record was changed, repeated, moved or sent back to its sender, or follows one that was dropped. Behind each record that
// reaches one of the KeyLimits, both ends replace the direction's key (renew_key()); the numbers go on.

inline constexpr std::size_t kRecordHeadBytes = 4;
inline constexpr std::size_t kMaxRecordContent = 64 << 10;
inline constexpr std::size_t kMaxRecordBytes = kRecordHeadBytes + kMaxRecordContent + Cipher::kTagBytes;

/// How much one key seals at most, but for the end of its last record; part of the wire format, but for tests. AES-GCM sets them: RFC 8446,
/// section 5.5, allows it 2^24.5 records of 2^14 bytes, which are 2^38.5 bytes. ChaCha20-Poly1305 would need none.
struct KeyLimits {
  std::uint64_t records = std::uint64_t{1} << 24;
  std::uint64_t bytes = std::uint64_t{1} << 36;  // of content
};

/// A link whose bytes are encrypted on the link below it. No byte is passed on before its record's tag was checked. It fails with
/// `protocol_error` where a record does not verify, and with `peer_lost` where the link below ends before the record that ends this
/// direction, also between two records.
///
/// Bytes that sent() has counted may wait here, encrypted, one record at most; they are lost if the link is destroyed then. Where this side
/// is ending its direction, the end of the peer's direction is reported only when the own end has left. It needs memory for at most two
/// incoming records and one outgoing record.
class SecureLink final : public Link, private LinkUser {
 public:
  /// No byte of the records was read from `inner`. Each cipher is of one direction, and both are of `suite`. Starts nothing yet.
  SecureLink(EventLoop& loop, std::unique_ptr<Link> inner, CipherSuite suite, std::unique_ptr<Cipher> sealing,
             std::unique_ptr<Cipher> opening, const KeyLimits& limits = {});
  SecureLink(const SecureLink&) = delete;
  SecureLink& operator=(const SecureLink&) = delete;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  void receive_seldom() override { inner_->receive_seldom(); }
  std::string peer_name() const override { return peer_name_; }
  std::string own_name() const override { return own_name_; }
  std::string_view medium() const override { return medium_; }
  std::string_view cipher() const override { return name_of(suite_); }
  std::optional<SendCounters> send_counters() const override { return inner_ ? inner_->send_counters() : std::nullopt; }

 private:
  /// The records of one direction.
  struct Direction {
    const std::unique_ptr<Cipher> cipher;
    std::uint64_t records = 0;
    std::uint64_t key_records = 0, key_bytes = 0;  // under the present key
  };

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
  // These return false where nothing more can be passed on now, or this object has been destroyed or has failed.
  bool open_next();
  bool open(std::size_t content_bytes);
  bool hand_on();
  bool tell_end();
  /// Asks the user for room for at most `most` bytes, stores it in room_ and returns its size. Where it is 0, the user will wake this link,
  /// unless it has given the link to another user.
  std::size_t ask_for_room(std::size_t most);
  /// Counts a record that was sealed or opened, and replaces the key where that has reached a limit.
  void count_record(Direction& direction, std::size_t content_bytes) const;
  void fail(Errc code, std::string text);

  EventLoop& loop_;
  std::unique_ptr<Link> inner_;
  const std::string peer_name_, own_name_;
  const std::string_view medium_;
  const CipherSuite suite_;
  const KeyLimits limits_;
  LinkUser* user_ = nullptr;  // null before start() and after the last call
  AliveGuard guard_;          // also ended by a failure

  // sending
  Direction sealing_;
  std::vector<std::byte> outgoing_;
  ConstBytes unsent_;   // of outgoing_
  bool woken_ = false;  // wake() was called since the user was last asked for bytes
  bool finish_requested_ = false;
  bool end_sealed_ = false;

  // receiving
  Direction opening_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of buffer_: the bytes that have come and are not opened yet
  ConstBytes content_;               // of buffer_, before begin_: opened, but not handed on yet
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
