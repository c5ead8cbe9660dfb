#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/rendezvous/handshake.hpp"
#include "core/wire/frame.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/reference.hpp"
#include "tests/core/test_authenticator.hpp"

namespace ringlet::test {

/// Sends whatever bytes a test chooses over a link from a node of its own, and ignores what comes back.
class RawPeer final : private LinkUser {
 public:
  explicit RawPeer(SimWorld& world) : node_(world.add_node()) {}

  void dial_until_linked(const Address& address, std::function<void()> on_linked) {
    node_.network().dial(address, Duration::seconds(1), [this, address, on_linked](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) {
        node_.loop().after(Duration::milliseconds(30), [this, address, on_linked] { dial_until_linked(address, on_linked); });
        return;
      }
      if (authenticator_) return authenticate(std::move(link).value(), on_linked);
      use(std::move(link).value());
      on_linked();
    });
  }
  /// Makes links that are dialled from now on begin with a handshake.
  void use_token(const std::string& token) { authenticator_ = std::make_unique<TestAuthenticator>(1, token); }
  void send(ConstBytes bytes) {
    outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
    if (link_) link_->wake();
  }
  /// `header` states the payload's size by itself, so that it can be wrong.
  void send_frame(const FrameHeader& header, ConstBytes payload = {}) {
    std::array<std::byte, kFrameHeaderBytes> bytes{};
    encode(header, bytes.data());
    send(bytes);
    send(payload);
  }
  SimNode& node() { return node_; }
  /// Leaves what comes in the network.
  void stop_reading() { reads_ = false; }
  bool linked() const { return link_ != nullptr; }
  bool ended() const { return ended_; }
  void finish_sending() { link_->finish_sending(); }
  void close() { link_.reset(); }

 private:
  void use(std::unique_ptr<Link> link) {
    link_ = std::move(link);
    link_->start(*this);
    link_->wake();
  }
  void authenticate(std::unique_ptr<Link> link, const std::function<void()>& on_linked) {
    handshake_ = std::make_unique<DialHandshake>(node_.loop(), std::move(link), *authenticator_, LinkRequest{},
                                                 [this, on_linked](Result<std::unique_ptr<Link>> authenticated) {
                                                   if (!authenticated.ok()) return;
                                                   use(std::move(authenticated).value());
                                                   on_linked();
                                                 });
  }

  std::span<const ConstBytes> to_send() override {
    part_ = ConstBytes(outgoing_).subspan(sent_);
    return {&part_, part_.empty() ? 0U : 1U};
  }
  void sent(std::size_t bytes) override { sent_ += bytes; }
  std::span<const Bytes> to_receive() override { return {&space_, reads_ ? 1U : 0U}; }
  void received(std::size_t) override {}
  void receive_ended() override { ended_ = true; }
  void link_failed(const Status&) override { ended_ = true; }

  SimNode& node_;
  std::unique_ptr<TestAuthenticator> authenticator_;
  std::unique_ptr<DialHandshake> handshake_;
  std::unique_ptr<Link> link_;
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;
  ConstBytes part_;
  std::array<std::byte, 4096> buffer_{};
  Bytes space_{buffer_};
  bool ended_ = false, reads_ = true;
};

}  // namespace ringlet::test
