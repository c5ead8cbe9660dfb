#include "core/rendezvous/handshake.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/rendezvous/key_schedule.hpp"
#include "core/rendezvous/secure_link.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kHelloBytes = kPrefaceBytes + kNonceBytes;
constexpr std::size_t kFlagsAt = 6;
constexpr std::string_view kDialler = "ringlet dialler";
constexpr std::string_view kAcceptor = "ringlet acceptor";
constexpr std::string_view kKeys = "ringlet keys";
constexpr std::string_view kBinding = "ringlet binding";

std::array<std::byte, kRequestBytes> encode(const LinkRequest& request) {
  std::array<std::byte, kRequestBytes> out{};
  out[0] = static_cast<std::byte>(request.kind);
  out[1] = static_cast<std::byte>(request.shortcut);
  detail::store_le(out.data() + 4, request.from);
  detail::store_le(out.data() + 8, request.to);
  detail::store_le(out.data() + 16, request.world_id);
  return out;
}

std::optional<LinkRequest> decode_request(const std::byte* in) {
  LinkRequest request;
  for (const auto kind : {LinkRequest::Kind::relay, LinkRequest::Kind::agent})
    if (in[0] == static_cast<std::byte>(kind)) request.kind = kind;
  request.shortcut = request.kind == LinkRequest::Kind::link && in[1] == std::byte{1};
  request.from = detail::load_le<std::uint32_t>(in + 4);
  request.to = detail::load_le<std::uint32_t>(in + 8);
  request.world_id = detail::load_le<std::uint64_t>(in + 16);
  // A request with a kind or an option that this version does not know is refused.
  const auto again = encode(request);
  if (!std::equal(again.begin(), again.end(), in)) return std::nullopt;
  return request;
}

const char* names_of(CipherSet ciphers) {
  const bool chacha20 = (ciphers & set_of(CipherSuite::chacha20_poly1305)) != 0, aes = (ciphers & set_of(CipherSuite::aes256_gcm)) != 0;
  return chacha20 && aes ? "chacha20 or aes256gcm" : chacha20 ? "chacha20" : aes ? "aes256gcm" : "none that this version knows";
}

}  // namespace

Handshake::Handshake(EventLoop& loop, std::unique_ptr<Link> link, Authenticator& authenticator, Done on_done)
    : authenticator_(authenticator), loop_(loop), link_(std::move(link)), on_done_(std::move(on_done)) {}

void Handshake::start() {
  link_->start(*this);
  link_->wake();
}

void Handshake::send(ConstBytes bytes) {
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
  link_->wake();
}

void Handshake::expect(std::size_t bytes) {
  RINGLET_CHECK(bytes <= kMaxReceived);
  expected_ = bytes;
  received_ = 0;
  link_->wake();
}

void Handshake::drain() {
  draining_ = true;
  link_->finish_sending();
}

Key Handshake::own_nonce() {
  authenticator_.fill_random(secret_);
  return authenticator_.encrypts() ? authenticator_.public_key(secret_) : secret_;
}

std::array<std::byte, kPrefaceBytes> Handshake::own_preface() const {
  auto preface = encode_preface();
  if (authenticator_.encrypts()) preface[kFlagsAt] = kEncrypts | std::byte{authenticator_.ciphers()};
  return preface;
}

Status Handshake::check(const std::byte* preface) const {
  std::array<std::byte, kPrefaceBytes> unencrypted;
  std::copy_n(preface, kPrefaceBytes, unencrypted.begin());
  if ((unencrypted[kFlagsAt] & kEncrypts) != std::byte{}) unencrypted[kFlagsAt] &= ~(kEncrypts | kCiphers);
  if (Status status = check_preface(unencrypted.data()); !status.ok()) return status;
  if (((preface[kFlagsAt] & kEncrypts) != std::byte{}) == authenticator_.encrypts()) {
    const CipherSet theirs = std::to_integer<CipherSet>(preface[kFlagsAt] & kCiphers), ours = authenticator_.ciphers();
    if (!authenticator_.encrypts() || (theirs & ours) != 0) return {};
    return {Errc::mismatch, std::string("the other side takes ") + names_of(theirs) + " as the link's cipher, this rank " + names_of(ours) +
                                "; give both the same RINGLET_CIPHER, or none (browsers take chacha20 alone)"};
  }
  const auto setting = [](bool encrypts) {
    return encrypts ? "encrypts its links (RINGLET_ENCRYPT=on, or a token and no setting)"
                    : "does not encrypt its links (RINGLET_ENCRYPT=off, or no token and no setting)";
  };
  return {Errc::mismatch, std::string("this rank ") + setting(authenticator_.encrypts()) + ", the other side " +
                              setting(!authenticator_.encrypts()) + "; give all ranks the same token and the same RINGLET_ENCRYPT"};
}

CipherSuite Handshake::chosen_cipher() const {
  const std::byte common = transcript_.dialler_preface[kFlagsAt] & transcript_.acceptor_preface[kFlagsAt];
  return (common & std::byte{set_of(CipherSuite::aes256_gcm)}) != std::byte{} ? CipherSuite::aes256_gcm : CipherSuite::chacha20_poly1305;
}

void Handshake::finish(LinkSide side) {
  std::unique_ptr<Link> link = std::move(link_);
  const Done on_done = std::exchange(on_done_, nullptr);
  if (authenticator_.encrypts()) {
    const bool dials = side == LinkSide::dialler;
    auto agreed = authenticator_.agree(secret_, dials ? transcript_.acceptor_nonce : transcript_.dialler_nonce);
    if (!agreed) {
      const std::string who = link->peer_name();
      link.reset();
      return on_done(Status(Errc::protocol_error, who + " has sent a public key that would make every key known"));
    }
    TrafficKeys keys;
    derive_keys(authenticator_, sign(kKeys), *agreed, keys);
    wipe(*agreed);
    const CipherSuite suite = chosen_cipher();
    link = std::make_unique<SecureLink>(loop_, std::move(link), suite,
                                        authenticator_.make_cipher(suite, dials ? keys.from_dialler : keys.from_acceptor),
                                        authenticator_.make_cipher(suite, dials ? keys.from_acceptor : keys.from_dialler));
    link->set_binding(keys.binding);
  } else {
    link->set_binding(sign(kBinding));
  }
  on_done(std::move(link));
}

void Handshake::fail(Errc code, std::string text) {
  if (!on_done_) return;
  const Done on_done = std::exchange(on_done_, nullptr);
  const std::unique_ptr<Link> dropped = std::move(link_);
  on_done(Status(code, std::move(text)));
}

Proof Handshake::sign(std::string_view role) const {
  std::vector<std::byte> message;
  const auto add = [&](ConstBytes bytes) { message.insert(message.end(), bytes.begin(), bytes.end()); };
  add(std::as_bytes(std::span(role.data(), role.size())));
  add(transcript_.dialler_preface);
  add(transcript_.acceptor_preface);
  add(transcript_.dialler_nonce);
  add(transcript_.acceptor_nonce);
  add(transcript_.request);
  return authenticator_.sign(message);
}

bool Handshake::check_proof(std::string_view role, ConstBytes proof) const {
  const Proof expected = sign(role);
  // The comparison takes constant time, so that the time does not show how much of a guess was right.
  std::byte difference{};
  for (std::size_t i = 0; i < expected.size(); ++i) difference |= expected[i] ^ proof[i];
  return difference == std::byte{};
}

std::span<const ConstBytes> Handshake::to_send() {
  send_part_ = ConstBytes(outgoing_).subspan(sent_);
  return {&send_part_, send_part_.empty() ? 0u : 1u};
}

void Handshake::sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ == outgoing_.size()) on_sent();
}

std::span<const Bytes> Handshake::to_receive() {
  receive_part_ = draining_ ? Bytes(incoming_) : Bytes(incoming_).first(expected_).subspan(received_);
  return {&receive_part_, receive_part_.empty() ? 0u : 1u};
}

void Handshake::received(std::size_t bytes) {
  if (draining_) return;
  received_ += bytes;
  on_received(received_ == expected_);
}

// --- dialler ---

DialHandshake::DialHandshake(EventLoop& loop, std::unique_ptr<Link> link, Authenticator& authenticator, const LinkRequest& request,
                             Done on_done)
    : Handshake(loop, std::move(link), authenticator, std::move(on_done)), request_(request) {
  transcript_.dialler_preface = own_preface();
  transcript_.dialler_nonce = own_nonce();
  transcript_.request = encode(request);
  start();
  send(transcript_.dialler_preface);
  send(transcript_.dialler_nonce);
  expect(kHelloBytes);
}

void DialHandshake::on_received(bool all) {
  if (state_ == State::hello) {
    // The preface is checked first, because another version may send nothing after it.
    if (incoming().size() >= kPrefaceBytes) {
      if (const Status status = check(incoming().data()); !status.ok()) {
        return fail(status.code(), peer_name() + ": " + status.text());
      }
    }
    if (all) on_hello();
    return;
  }
  if (!all) return;
  if (!check_proof(kAcceptor, incoming()))
    fail(Errc::mismatch, peer_name() +
                             " does not know this group's token, or somebody on the way has changed the handshake; give all ranks the same "
                             "(RINGLET_TOKEN, RINGLET_TOKEN_FILE)");
  else
    finish(LinkSide::dialler);
}

void DialHandshake::on_hello() {
  const auto hello = incoming();
  std::copy_n(hello.begin(), kPrefaceBytes, transcript_.acceptor_preface.begin());
  std::copy_n(hello.begin() + kPrefaceBytes, kNonceBytes, transcript_.acceptor_nonce.begin());
  state_ = State::proof;
  send(transcript_.request);
  send(sign(kDialler));
  expect(sizeof(Proof));
}

void DialHandshake::on_closed(const std::string& text) {
  const std::string who = peer_name();
  if (state_ == State::hello) return fail(Errc::peer_lost, who + " did not open the connection as a rank does: " + text);
  if (request_.kind == LinkRequest::Kind::relay)
    return fail(Errc::peer_lost, who + " gave up waiting for rank " + std::to_string(request_.to) + ", to which it was to relay: " + text);
  fail(Errc::mismatch, who +
                           " closed the connection during authentication: the tokens differ, or one side has none; give all ranks the same "
                           "(RINGLET_TOKEN, RINGLET_TOKEN_FILE). Where they are the same, somebody on the way has changed the handshake");
}

// --- acceptor ---

AcceptHandshake::AcceptHandshake(EventLoop& loop, std::unique_ptr<Link> link, ConstBytes first, Authenticator& authenticator,
                                 OnRequest on_request, Done on_done)
    : Handshake(loop, std::move(link), authenticator, std::move(on_done)),
      on_request_(std::move(on_request)),
      first_(first.begin(), first.end()) {
  RINGLET_CHECK(first.size() <= kPrefaceBytes);
  start();
  expect(kHelloBytes - first_.size());
}

void AcceptHandshake::accept() {
  RINGLET_CHECK(state_ == State::waiting);
  state_ = State::accepted;
  expect(0);
  send(sign(kAcceptor));
}

void AcceptHandshake::on_received(bool all) {
  switch (state_) {
    case State::hello:
      return on_hello(all);
    case State::request:
      if (all) on_request_received();
      return;
    default:
      fail(Errc::protocol_error, "it went on before it was let in");
  }
}

void AcceptHandshake::on_hello(bool all) {
  std::vector<std::byte> hello = first_;
  hello.insert(hello.end(), incoming().begin(), incoming().end());
  if (hello.size() < kPrefaceBytes) return;
  transcript_.acceptor_preface = own_preface();
  refusal_ = check(hello.data());
  if (!refusal_.ok()) {
    // The preface lets the dialler report the reason itself, such as both versions.
    state_ = State::refused;
    send(transcript_.acceptor_preface);
    return drain();
  }
  if (!all) return;
  std::copy_n(hello.begin(), kPrefaceBytes, transcript_.dialler_preface.begin());
  std::copy_n(hello.begin() + kPrefaceBytes, kNonceBytes, transcript_.dialler_nonce.begin());
  transcript_.acceptor_nonce = own_nonce();
  state_ = State::request;
  send(transcript_.acceptor_preface);
  send(transcript_.acceptor_nonce);
  expect(kRequestBytes + sizeof(Proof));
}

void AcceptHandshake::on_request_received() {
  std::copy_n(incoming().begin(), kRequestBytes, transcript_.request.begin());
  if (!check_proof(kDialler, incoming().subspan(kRequestBytes)))
    return fail(Errc::mismatch, "it does not know the token, or somebody on the way has changed the handshake");
  const auto request = decode_request(transcript_.request.data());
  if (!request) return fail(Errc::protocol_error, "it asks for something that this version does not know");
  state_ = State::waiting;
  // One byte is expected, to notice a dialler that goes away or sends before its turn.
  expect(1);
  const OnRequest on_request = std::exchange(on_request_, nullptr);
  on_request(*request);
}

void AcceptHandshake::on_sent() {
  if (state_ == State::accepted) finish(LinkSide::acceptor);
}

void AcceptHandshake::on_closed(const std::string& text) {
  if (state_ == State::refused) return fail(refusal_.code(), refusal_.text());
  fail(Errc::peer_lost, text);
}

}  // namespace ringlet
