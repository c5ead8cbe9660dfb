#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/result.hpp"
#include "core/ports/authenticator.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "core/ports/shortcut.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

// How every link opens, before any session: both sides prove that they know the group's token, and the dialler says what it wants.
//
//   dialler   preface, nonce
//   acceptor  preface, nonce
//   dialler   request, proof over "ringlet dialler", both prefaces, both nonces and the request (the dialler's first)
//   acceptor  nothing where that proof is wrong; else proof over "ringlet acceptor" and the same
//
// Each side reads exactly these bytes; what follows is the next user's of the link.
//
// Both prefaces say whether that is encrypted, by the sides' own settings: where they differ, the link is refused, and never opened
// without. A nonce is then a fresh public key of X25519, and the keys of the two directions come by HKDF from what both agree on, salted
// with an HMAC under the token over "ringlet keys" and the same as in the proofs (key_schedule.hpp); what follows are the records of a
// SecureLink. The shape is that of NNpsk in the Noise Protocol Framework: the token proves who is there, the fresh keys encrypt. Who has
// recorded a link and learns the token later can read nothing of it (forward secrecy). Without a token anybody could stand between the two:
// then it keeps out only those who merely listen. Sources: RFC 7748 (X25519), RFC 5869 (HKDF), RFC 8439 (ChaCha20-Poly1305).

inline constexpr std::size_t kNonceBytes = 32;
/// Among the preface's flags, in its byte 6: what follows the handshake is encrypted.
inline constexpr std::byte kEncrypts{1};
/// Little-endian: kind u8, shortcut u8, 2 bytes zero, from u32, to u32, 4 bytes zero, world_id u64.
inline constexpr std::size_t kRequestBytes = 24;

/// What a dialler wants.
struct LinkRequest {
  enum class Kind : std::uint8_t {
    link = 0,   // a link with the one that it has dialled
    relay = 1,  // a link with rank `to`, through the one that it has dialled
    agent = 2,  // a conversation with an agent, which starts programs
  };
  Kind kind = Kind::link;
  std::uint32_t from = 0;  // relay: the dialler's rank
  std::uint32_t to = 0;
  std::uint64_t world_id = 0;
  bool shortcut = false;  // link: both look for one behind the handshake (core/ports/shortcut.hpp)

  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

/// One side of a link while it opens. It holds the link, and gives it on once the other side is authenticated, or drops it.
/// Belongs to the loop's thread; sets no deadline: destroying it gives up. It may be destroyed inside its callbacks.
class Handshake : private LinkUser {
 public:
  /// Runs once, inside a call of the link: the link for its next user, or why there is none. Who gets the link starts it before it returns,
  /// or destroys it.
  using Done = std::function<void(Result<std::unique_ptr<Link>>)>;

  virtual ~Handshake() { wipe(secret_); }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  std::string peer_name() const { return link_->peer_name(); }

 protected:
  Handshake(EventLoop& loop, std::unique_ptr<Link> link, Authenticator& authenticator, Done on_done);
  void start();

  void send(ConstBytes bytes);
  /// The next `bytes` (0: none) are to be received; on_received() is called when they are there. At most kMostReceived.
  void expect(std::size_t bytes);
  ConstBytes incoming() const { return ConstBytes(incoming_).first(received_); }
  /// Reads on and throws away, so that no reset takes from the peer what was sent to it.
  void drain();
  /// This side's preface and nonce.
  std::array<std::byte, kPrefaceBytes> own_preface() const;
  Key own_nonce();
  /// Why the other side's preface cannot be gone on with.
  Status check(const std::byte* preface) const;
  /// Hands the link on, encrypted where it is to be.
  void finish(LinkSide side);
  void fail(Errc code, std::string text);
  Proof sign(std::string_view role) const;
  bool check_proof(std::string_view role, ConstBytes proof) const;
  Link& link() { return *link_; }

  static constexpr std::size_t kMostReceived = kRequestBytes + sizeof(Proof);
  /// Both prefaces, both nonces and the request as they were sent.
  struct Transcript {
    std::array<std::byte, kPrefaceBytes> dialler_preface, acceptor_preface;
    std::array<std::byte, kNonceBytes> dialler_nonce, acceptor_nonce;
    std::array<std::byte, kRequestBytes> request;
  };
  Transcript transcript_{};
  Authenticator& authenticator_;

 private:
  /// Some of the expected bytes are there; `all`: every one.
  virtual void on_received(bool all) = 0;
  /// All that was given to send() has left.
  virtual void on_sent() {}
  /// The peer closed the link, or it broke, with this text.
  virtual void on_closed(const std::string& text) = 0;

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override { on_closed("it closed the connection"); }
  void link_failed(const Status& status) override { on_closed(status.text()); }

  EventLoop& loop_;
  std::unique_ptr<Link> link_;
  Done on_done_;
  Key secret_{};  // of own_nonce()
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;
  ConstBytes send_part_;
  std::array<std::byte, kMostReceived> incoming_{};
  std::size_t received_ = 0;
  std::size_t expected_ = 0;
  bool draining_ = false;
  Bytes receive_part_;
};

/// The side that has dialled. The failure is `protocol_error` where the other side speaks another version or no Ringlet, `mismatch` where
/// the tokens differ or one side's links are encrypted and the other's are not, else `peer_lost`.
class DialHandshake final : public Handshake {
 public:
  /// `loop` outlives the link that it hands on.
  DialHandshake(EventLoop& loop, std::unique_ptr<Link> link, Authenticator& authenticator, const LinkRequest& request, Done on_done);

 private:
  enum class State : std::uint8_t { hello, proof };

  void on_received(bool all) override;
  void on_closed(const std::string& text) override;
  void on_hello();

  const LinkRequest request_;
  State state_ = State::hello;
};

/// The side that has accepted. It says nothing to a dialler that does not know the token.
class AcceptHandshake final : public Handshake {
 public:
  /// Runs at most once: an authenticated dialler wants this. accept() may follow at once or later; until then the dialler waits.
  using OnRequest = std::function<void(const LinkRequest&)>;

  /// `first`: bytes of the dialler's that were read already, at most kPrefaceBytes. `loop` outlives the link that it hands on.
  AcceptHandshake(EventLoop& loop, std::unique_ptr<Link> link, ConstBytes first, Authenticator& authenticator, OnRequest on_request,
                  Done on_done);

  void accept();

 private:
  enum class State : std::uint8_t { hello, request, waiting, accepted, refused };

  void on_received(bool all) override;
  void on_sent() override;
  void on_closed(const std::string& text) override;
  void on_hello(bool all);
  void on_request_received();

  OnRequest on_request_;
  std::vector<std::byte> first_;
  Status refusal_;
  State state_ = State::hello;
};

}  // namespace ringlet
