#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <random>

#include "tests/conformance/network_suite.hpp"

namespace ringlet::conformance {

enum class Call { to_send, sent, to_receive, received, receive_ended, link_failed };

/// A link user that sends one endless pattern in random parts, up to a limit, and compares what it receives with the peer's pattern. It
/// also checks that the link keeps its contract.
class SuiteUser final : public LinkUser {
 public:
  SuiteUser(unsigned pattern, unsigned peer_pattern) : pattern_(pattern), peer_pattern_(peer_pattern), random_(pattern) {}

  std::unique_ptr<Link> link;
  std::size_t bytes_to_send = 0;
  std::size_t longest_part = 1000;
  bool for_caches = false;
  std::size_t receive_parts = 2;
  std::size_t receive_limit = SIZE_MAX;  // bytes to receive in all; at the limit it has no room
  std::size_t bytes_sent = 0;
  std::size_t bytes_received = 0;
  int to_send_calls = 0;
  int receive_ended_calls = 0;
  int link_failed_calls = 0;
  std::optional<Status> failure;
  /// Runs at the end of each call, and may destroy the link.
  std::function<void(Call)> on_call;

  void use(std::unique_ptr<Link> new_link);
  void wake();
  void send(std::size_t more_bytes);
  void finish_sending();
  /// Takes back the memory that it has lent to the link, and overwrites it.
  void recall();
  bool closed_by_peer() const { return receive_ended_calls + link_failed_calls > 0; }

  std::span<const ConstBytes> to_send() override;
  bool sends_for_caches() const override { return for_caches; }
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

 private:
  void enter(Call call);
  void leave(Call call);
  std::byte byte_at(unsigned pattern, std::size_t index) const;
  std::size_t random_below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  unsigned pattern_;
  unsigned peer_pattern_;
  std::mt19937 random_;
  bool calling_ = false;  // this user is inside a call to the link
  bool being_called_ = false;
  std::size_t offered_ = 0;          // bytes offered by the last to_send(), not yet sent
  std::size_t wanted_ = 0;           // bytes asked for by the last to_receive(), 0 once received() came
  std::vector<std::byte> outgoing_;  // first the poisoned bytes of the last sent(), then those from bytes_sent on
  std::size_t poisoned_ = 0;
  std::vector<std::byte> incoming_;
  std::vector<ConstBytes> send_parts_;
  std::array<Bytes, 2> receive_parts_;
};

/// A listener on side 1 and a link dialled from side 0, each end with its user. The links are destroyed before the pair.
struct LinkedUsers {
  SuiteUser dialler{1, 2};
  SuiteUser acceptor{2, 1};
  std::unique_ptr<Listener> listener;

  explicit LinkedUsers(NetworkPair& pair);
};

/// Runs both loops for a while, in which nothing is expected to happen.
void settle(NetworkPair& pair);

}  // namespace ringlet::conformance
