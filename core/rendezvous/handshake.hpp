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

// The handshake with which every link opens, before any session: both sides prove that they know the group's token, and the dialler sends a
// request.
//
//   dialler   preface, nonce
//   acceptor  preface, nonce
//   dialler   request, proof over "ringlet dialler", both prefaces, both nonces and the request (the dialler's first)
//   acceptor  where that proof is right: proof over "ringlet acceptor" and the same; otherwise nothing
//
// Each side reads exactly these bytes. Those that follow belong to the link's next user.
//
// A flag in both prefaces says whether the bytes behind the handshake are encrypted, by each side's own setting. Where the flags differ,
// the link is refused; it is never opened without encryption instead. Two more flags of a side that encrypts say which ciphers it takes
// (CipherSuite). The link has AES-256-GCM where both take that, else ChaCha20-Poly1305; without a common one it is refused. Both offers are
// in the proofs and in the salt of the keys, so who changes one on its way to weaken the choice ends the handshake. With encryption a nonce
// is a fresh public key of X25519, and the keys of the two directions are derived by HKDF from the secret that both agree on, salted with
// an HMAC under the token over "ringlet keys" and the same as in the proofs (key_schedule.hpp); records of a SecureLink follow. The pattern
// is that of NNpsk in the Noise Protocol Framework: the token authenticates, the fresh keys encrypt. An attacker that has recorded a link
// and learns the token later can read nothing of it (forward secrecy). Without a token anybody could be in the middle, and encryption keeps
// out only attackers that merely listen.
//
// Both ends also derive the link's binding (core/ports/link.hpp), which they may sign with keys of their own: with encryption from the
// agreed secret, so that two links which somebody in the middle joins have two; without from an HMAC under the token over "ringlet binding"
// and the same as in the proofs. Sources: RFC 7748 (X25519), RFC 5869 (HKDF), RFC 8439 (ChaCha20-Poly1305),
// NIST SP 800-38D (GCM).

inline constexpr std::size_t kNonceBytes = 32;
/// The bit of the preface's flags, in its byte 6, that says that the bytes behind the handshake are encrypted.
inline constexpr std::byte kEncrypts{1};
/// Those that say which ciphers its sender takes.
inline constexpr std::byte kCiphers{kAllCiphers};
/// The length of a request. Little-endian: kind u8, shortcut u8, 2 bytes zero, from u32, to u32, 4 bytes zero, world_id u64.
inline constexpr std::size_t kRequestBytes = 24;

/// A dialler's request.
struct LinkRequest {
  enum class Kind : std::uint8_t {
    link = 0,   // a link with the rank that was dialled
    relay = 1,  // a link with rank `to`, through the rank that was dialled
    agent = 2,  // a conversation with an agent, which starts programs
  };
  Kind kind = Kind::link;
  std::uint32_t from = 0;  // relay: the dialler's rank
  std::uint32_t to = 0;
  std::uint64_t world_id = 0;
  bool shortcut = false;  // link: both sides look for a shortcut behind the handshake (core/ports/shortcut.hpp)

  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

/// One side of the handshake. It owns the link, and passes it on once the other side is authenticated, or drops it. It sets no deadline:
/// destroying it gives the link up, and is allowed inside its callbacks. Belongs to the loop's thread.
class Handshake : private LinkUser {
 public:
  /// Runs once, inside a call of the link, with the link for its next user, or the reason why there is none. It starts the link before it
  /// returns, or destroys it.
  using Done = std::function<void(Result<std::unique_ptr<Link>>)>;

  virtual ~Handshake() { wipe(secret_); }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  std::string peer_name() const { return link_->peer_name(); }

 protected:
  Handshake(EventLoop& loop, std::unique_ptr<Link> link, Authenticator& authenticator, Done on_done);
  void start();

  void send(ConstBytes bytes);
  /// Receives the next `bytes`, at most kMaxReceived, for on_received(). With 0 it receives nothing.
  void expect(std::size_t bytes);
  ConstBytes incoming() const { return ConstBytes(incoming_).first(received_); }
  /// Ends sending, and goes on reading without using the bytes: with unread bytes a close would be a reset, and the peer might lose the
  /// answer.
  void drain();
  /// This side's preface and nonce.
  std::array<std::byte, kPrefaceBytes> own_preface() const;
  Key own_nonce();
  /// Returns ok where the handshake can go on with the other side's preface, otherwise the reason why not.
  Status check(const std::byte* preface) const;
  /// The cipher of the link, by both prefaces, which have one in common.
  CipherSuite chosen_cipher() const;
  /// Passes the link on, as a SecureLink where it is to be encrypted.
  void finish(LinkSide side);
  void fail(Errc code, std::string text);
  Proof sign(std::string_view role) const;
  bool check_proof(std::string_view role, ConstBytes proof) const;
  Link& link() { return *link_; }

  static constexpr std::size_t kMaxReceived = kRequestBytes + sizeof(Proof);
  /// Both prefaces, both nonces and the request, as the bytes that were sent.
  struct Transcript {
    std::array<std::byte, kPrefaceBytes> dialler_preface, acceptor_preface;
    std::array<std::byte, kNonceBytes> dialler_nonce, acceptor_nonce;
    std::array<std::byte, kRequestBytes> request;
  };
  Transcript transcript_{};
  Authenticator& authenticator_;

 private:
  /// Called when some of the expected bytes have come; `all` says whether these are all of them.
  virtual void on_received(bool all) = 0;
  /// Called when all bytes that were given to send() have left.
  virtual void on_sent() {}
  /// Called when the peer has closed the link, or the link has broken; `text` says which.
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
  Key secret_{};  // belongs to own_nonce()
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;
  ConstBytes send_part_;
  std::array<std::byte, kMaxReceived> incoming_{};
  std::size_t received_ = 0;
  std::size_t expected_ = 0;
  bool draining_ = false;
  Bytes receive_part_;
};

/// The side that has dialled. It fails with `protocol_error` where the other side speaks another version or no Ringlet, with `mismatch`
/// where the tokens differ, only one side's links are encrypted or no cipher is common, else with `peer_lost`.
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

/// The side that has accepted. It sends no proof to a dialler that does not know the token.
class AcceptHandshake final : public Handshake {
 public:
  /// Runs at most once, with the request of an authenticated dialler. accept() may follow at once or later; until then the dialler waits.
  using OnRequest = std::function<void(const LinkRequest&)>;

  /// `first` has the bytes that were already read from the dialler, at most kPrefaceBytes. `loop` outlives the link that it hands on.
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
