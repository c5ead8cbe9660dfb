#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/alive_guard.hpp"
#include "core/rendezvous/dialler.hpp"
#include "tools/agent/link_identity.hpp"
#include "tools/job/message_link.hpp"

namespace ringlet::agent {

/// The findings of a PathProbe.
struct PathQuality {
  Status status{};                        // the failure of the dialler or of the MessageLink
  bool not_trusted = false;               // it answered, but refused this machine, or is not the one that it should be
  bool stalled = false;                   // small messages came through, and then a large one did not
  std::optional<Duration> round_trip{};   // the shortest of a few
  double bytes_per_second = 0;            // of large messages there; 0: not measured
  std::uint16_t rank_port = 0;            // where ranks of that machine could listen, which was tried then; 0: none was
  Status rank_port_status{};              // the failure of that
  std::optional<Duration> clock_ahead{};  // how far the agent's clock is ahead of this machine's, to about a round trip
};

/// What a PathProbe needs to know of the machines at both ends.
struct ProbeEnds {
  const LinkIdentity* identity = nullptr;  // of this machine; outlives the probe
  std::string group;                       // of both
  /// Says in a sentence why the machine that answers, with its name and key, is not trusted; an empty text where it is.
  std::function<std::string(const std::string& name, const machines::PublicKey& key)> find_doubt = [](const auto&, const auto&) {
    return std::string();
  };
};

/// Measures one way to an agent: each end proves who it is, then come some small messages, then about a megabyte there and a part of it
/// back. Takes as long as the way needs; gives up after 4 s without an answer. If all goes well it also connects to a port of the machine's
/// ranks. Belongs to the loop's thread; may be destroyed at any time, then `on_done` does not run.
class PathProbe {
 public:
  /// Runs once, from the loop.
  using OnDone = std::function<void(const PathQuality&)>;

  /// `loop`, `network` and `authenticator` outlive it.
  PathProbe(EventLoop& loop, Network& network, Authenticator& authenticator, const Address& address, ProbeEnds ends, OnDone on_done);
  ~PathProbe();
  PathProbe(const PathProbe&) = delete;
  PathProbe& operator=(const PathProbe&) = delete;

 private:
  void on_dialled(Result<std::unique_ptr<Link>> link);
  void on_message(const job::Message& message);
  void on_offer(const job::Offer& offer);
  void try_rank_port(std::uint16_t port);
  void ask();
  void wait_for_answer();
  void end();

  EventLoop& loop_;
  Network& network_;
  const std::string host_;
  Dialler dialler_;
  const ProbeEnds ends_;
  OnDone on_done_;
  std::unique_ptr<job::MessageLink> link_;
  AliveGuard alive_;
  PathQuality quality_;
  std::uint32_t number_ = 0;  // of the last question
  Instant asked_at_{};
  Instant large_since_{};
  TimerId timer_ = 0;
  bool over_ = false;
};

}  // namespace ringlet::agent
