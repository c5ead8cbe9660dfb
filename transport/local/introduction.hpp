#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/status.hpp>

#include "core/ports/link.hpp"
#include "core/ports/peer_memory.hpp"
#include "core/ports/shortcut.hpp"
#include "transport/local/mark.hpp"

namespace ringlet::local {

/// What two processes have found out about each other.
struct Acquaintance {
  std::unique_ptr<Link> link;
  std::unique_ptr<Mark> mark;  // this side's
  PeerMark peer;
  bool readable = false;  // both can read the other's mark
};

/// How the two ends of a link find out whether each can read the other's memory. Each tells who it is, where its mark stands and a random
/// word, which the other writes into its mark beside the names of the connection's ends: so what is read belongs to the process at the
/// other end of this very connection, and to none that the peer only points to, though it may talk to that one, too. Messages of fixed
/// sizes in turns: the dialler's greeting, the acceptor's, the dialler's verdict, the acceptor's. Who does not want to be read says so in
/// its greeting.
class Introduction final : private LinkUser {
 public:
  using Done = std::function<void(Result<Acquaintance>)>;

  /// `memory`: null where this side does not take part. `challenge`: the random word. `done` runs at most once, from the loop, and may
  /// destroy this.
  Introduction(std::unique_ptr<Link> link, LinkSide side, PeerMemory* memory, const MarkWord& challenge, Done done);
  void begin();
  /// Ends it, as a failure, with a call to `done`.
  void give_up(const Status& status);

 private:
  static constexpr std::size_t kGreetingBytes = 40;
  static constexpr std::size_t kVerdictBytes = 8;

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  void expect(std::size_t bytes);
  void greet();
  void judge();
  void on_greeting();
  void on_verdict();
  void finish();

  Acquaintance found_;
  const LinkSide side_;
  PeerMemory* memory_;
  const MarkWord challenge_;
  Done done_;
  bool peer_takes_part_ = false;
  bool readable_ = false;  // by this side
  bool finished_ = false;  // but for what has to leave
  std::array<std::byte, kGreetingBytes> out_{};
  ConstBytes unsent_;
  std::array<std::byte, kGreetingBytes> in_{};
  Bytes missing_;
  std::size_t expected_ = 0;
};

}  // namespace ringlet::local
