#include "transport/local/memory_shortcut.hpp"

#include <utility>

#include "core/base/address.hpp"
#include "core/ports/release_later.hpp"
#include "transport/local/peer_memory_link.hpp"
#include "transport/local/shared_ring_link.hpp"

namespace ringlet::local {

namespace {

constexpr Duration kIntroductionTime = Duration::seconds(5);
constexpr std::size_t kMaxPending = 1024;

}  // namespace

MemoryShortcut::MemoryShortcut(EventLoop& loop, PeerMemory* memory, FillRandom fill_random, PollSources* sources, std::size_t processors)
    : loop_(loop),
      memory_(memory),
      fill_random_(std::move(fill_random)),
      sources_(sources),
      neighbours_(std::make_shared<Neighbours>(processors)) {}

MemoryShortcut::~MemoryShortcut() {
  for (const Pending& pending : pending_) loop_.cancel(pending.deadline);
}

bool MemoryShortcut::offers(const Link& link) const {
  if (memory_ == nullptr) return false;
  const auto peer = parse_address(link.peer_name());
  if (!peer.ok()) return false;
  const auto own = parse_address(link.own_name());
  return is_loopback(peer.value()) || (own.ok() && own.value().host == peer.value().host);
}

void MemoryShortcut::take(std::unique_ptr<Link> link, LinkSide side, Taken taken) {
  if (pending_.size() >= kMaxPending) {
    const Status status(Errc::peer_lost, "too many connections look for a shortcut at once; " + link->peer_name() + " was dropped");
    loop_.defer(guard_.wrap([taken = std::move(taken), status] { taken(status); }));
    return;
  }
  const auto pending = pending_.emplace(pending_.end());
  MarkWord challenge;
  fill_random_(challenge);
  PeerMemory* const memory = offers(*link) ? memory_ : nullptr;
  const std::string name = link->peer_name();
  pending->taken = std::move(taken);
  pending->introduction =
      std::make_unique<Introduction>(std::move(link), side, memory, sources_ != nullptr, challenge,
                                     [this, pending, side](Result<Acquaintance> found) { on_introduced(pending, side, std::move(found)); });
  pending->deadline = loop_.after(kIntroductionTime, [introduction = pending->introduction.get(), name] {
    introduction->give_up({Errc::timed_out, name + " did not introduce itself in time"});
  });
  pending->introduction->begin();
}

void MemoryShortcut::on_introduced(std::list<Pending>::iterator pending, LinkSide side, Result<Acquaintance> found) {
  loop_.cancel(pending->deadline);
  const Taken taken = std::move(pending->taken);
  release_later(loop_, std::move(pending->introduction));
  pending_.erase(pending);
  if (!found.ok()) return taken(found.status());
  Acquaintance& peer = found.value();
  const bool has_rings = peer.rings != nullptr;
  if (has_rings) peer.link = std::make_unique<SharedRingLink>(std::move(peer.link), std::move(peer.rings), side, *sources_);
  if (!peer.readable) return taken(std::move(peer.link));
  taken(Result<std::unique_ptr<Link>>(std::make_unique<PeerMemoryLink>(std::move(peer.link), *memory_, std::move(peer.mark), peer.peer,
                                                                       has_rings ? kOverRings : kOverSockets,
                                                                       has_rings ? neighbours_ : nullptr)));
}

}  // namespace ringlet::local
