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
#include "transport/local/shared_memory.hpp"

namespace ringlet::local {

/// The result of an introduction: the link, and what is needed to read the peer's memory.
struct Acquaintance {
  std::unique_ptr<Link> link;
  std::unique_ptr<Mark> mark;  // this side's
  PeerMark peer;
  bool readable = false;                // whether each side can read the other's mark
  std::unique_ptr<SharedMemory> rings;  // a RingMemory, if both have it
};

/// The conversation in which the two ends of a link find out whether each can read the other's memory, and whether they can share some.
/// Each sends its process' number, its mark's address and a random word, which the other writes into its mark, beside the names of the
/// connection's two ends. A mark with that word and those names belongs to the process at the other end of this very connection, and not to
/// another process that the peer only points to. The messages have fixed sizes and come in turns: the dialler's greeting, the acceptor's
/// greeting, the dialler's verdict, the acceptor's verdict. A side that does not want to be read says so in its greeting.
///
/// The dialler makes the shared memory, and writes the acceptor's word and the names of the two ends into it, like into a mark. The
/// acceptor opens it by the dialler's process' number, compares both, and writes the dialler's word into it, which the dialler compares.
/// The system allows opening to processes of the same user, also where it forbids them to read each other's memory.
class Introduction final : private LinkUser {
 public:
  using Done = std::function<void(Result<Acquaintance>)>;

  /// `memory` is null if this side does not take part. `with_rings`: whether it takes part in sharing memory. `challenge`
  /// is the random word. `done` runs at most once, from the loop, and may destroy this object.
  Introduction(std::unique_ptr<Link> link, LinkSide side, PeerMemory* memory, bool with_rings, const MarkWord& challenge, Done done);
  void begin();
  /// Ends the introduction by calling `done` with this failure.
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
  bool opens_rings();
  void on_greeting();
  void on_verdict();
  void finish();

  Acquaintance found_;
  const LinkSide side_;
  PeerMemory* memory_;
  bool with_rings_;
  const MarkWord challenge_;
  Done done_;
  bool peer_takes_part_ = false;
  bool readable_ = false;              // this side can read the peer's mark
  std::uint32_t peer_descriptor_ = 0;  // of the shared memory, plus 1; 0 if the dialler offers none
  bool finished_ = false;              // only bytes of this side's last message have still to leave
  std::array<std::byte, kGreetingBytes> out_{};
  ConstBytes unsent_;
  std::array<std::byte, kGreetingBytes> in_{};
  Bytes missing_;
  std::size_t expected_ = 0;
};

}  // namespace ringlet::local
