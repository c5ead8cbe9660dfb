#pragma once

#include <functional>
#include <list>
#include <memory>

#include "core/base/alive_guard.hpp"
#include "core/ports/event_loop.hpp"
#include "core/ports/poll_source.hpp"
#include "core/ports/shortcut.hpp"
#include "transport/local/introduction.hpp"
#include "transport/local/neighbours.hpp"

namespace ringlet::local {

/// The shortcut between processes of one machine, whose connection begins and ends at one address, or on the loopback: they share the
/// memory of a SharedRingLink, and each reads the other's memory where that is faster; or one of the two, where the system refuses the
/// other.
class MemoryShortcut : public Shortcut {
 public:
  using FillRandom = std::function<void(Bytes)>;

  /// All arguments outlive it. `memory` is null if this process takes no part; it still answers peers that ask for a shortcut. `sources` is
  /// the same loop; null if this process shares no memory. The ranks of this machine share `processors`; 0: it is not known.
  MemoryShortcut(EventLoop& loop, PeerMemory* memory, FillRandom fill_random, PollSources* sources = nullptr, std::size_t processors = 0);
  ~MemoryShortcut() override;

  bool offers(const Link& link) const override;
  void take(std::unique_ptr<Link> link, LinkSide side, Taken taken) override;

 private:
  struct Pending {
    std::unique_ptr<Introduction> introduction;
    TimerId deadline = 0;
    Taken taken;
  };

  void on_introduced(std::list<Pending>::iterator pending, LinkSide side, Result<Acquaintance> found);

  EventLoop& loop_;
  PeerMemory* const memory_;
  const FillRandom fill_random_;
  PollSources* const sources_;
  const std::shared_ptr<Neighbours> neighbours_;
  std::list<Pending> pending_;
  AliveGuard guard_;
};

}  // namespace ringlet::local
