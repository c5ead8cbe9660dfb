#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/session.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/retry_pause.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct LinkCandidateOptions {
  LinkRequest request{};
  wire::Propose proposal{};
  std::vector<wire::Endpoint> interfaces{};  // this machine's addresses
  bool only_these_interfaces = false;        // whether a link that leaves by another one is dropped
  SessionOptions session{};
};

/// One address of a peer in a link race: it is dialled, and the link is proposed to the rank that answers there. Belongs to the loop's
/// thread.
class LinkCandidate final : private SessionOwner {
 public:
  enum class State : std::uint8_t {
    idle,       // is to be dialled
    dialling,   // until the link is authenticated
    proposed,   // until the peer accepts the proposal
    ready,      // may be measured and nominated
    nominated,  // until the peer accepts the nomination
    lost,       // may be dialled again
    hopeless,   // another rank, another world, or no Ringlet answers there
  };
  /// All run from the loop, inside a call of the session. The candidate may not be destroyed inside them.
  struct Callbacks {
    std::function<void(LinkCandidate&)> on_ready;
    std::function<void(LinkCandidate&, const wire::LinkProbe&)> on_probe_answer;
    /// The peer has accepted the nomination and has been sent the confirmation; the session is now the link.
    std::function<void(LinkCandidate&)> on_accepted;
    /// The candidate is now `lost` or `hopeless`.
    std::function<void(LinkCandidate&, const Status&)> on_lost;
  };

  /// All arguments outlive it. It begins as `idle` and starts nothing yet.
  LinkCandidate(EventLoop& loop, Dialler& dialler, const LinkCandidateOptions& options, wire::Endpoint target, const Callbacks& callbacks);
  ~LinkCandidate();

  State state() const { return state_; }
  /// Whether it may still become ready without being resumed.
  bool is_pending() const { return state_ < State::ready; }
  bool is_ready() const { return state_ == State::ready; }
  /// The peer's address, such as "10.0.0.7:5000".
  std::string text() const;
  /// The path of the link, as far as it is known.
  wire::Path& path() { return path_; }
  Instant dialled_at() const { return dialled_at_; }
  /// Whether the peer is on this machine.
  bool is_local() const;

  void dial_after(Duration pause);
  /// The race does not wait for this candidate now. Where it is not ready, its attempt is given up.
  void pause();
  /// Dials it again, where it is `lost`, after a pause that grows.
  void resume();
  void send(const wire::ControlMessage& message);
  /// Asks the peer to take this link.
  void nominate();
  /// Gives up the link because of something that its peer did or did not do. on_lost runs inside the call.
  void lose(const Status& status, bool for_good);
  /// Gives up the link without calling on_lost.
  void drop();
  /// Hands out the session of an accepted nomination.
  std::unique_ptr<Session> take();
  /// The race is over: ends this side's direction of the link and makes no further calls.
  void finish();

 private:
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_control(Session& session, ConstBytes payload) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;

  void dial();
  void on_dialled(Result<std::unique_ptr<Link>> link);
  void on_message(const wire::ControlMessage& message);
  void on_welcome(const wire::Welcome& welcome);

  EventLoop& loop_;
  Dialler& dialler_;
  const LinkCandidateOptions& options_;
  const wire::Endpoint target_;
  const Callbacks& callbacks_;
  State state_ = State::idle;
  bool paused_ = false, finished_ = false;
  RetryPause retry_pause_;
  int refusals_ = 0;
  TimerId timer_ = 0;
  Instant dialled_at_{};
  wire::Path path_{};
  std::unique_ptr<Session> session_;
  AliveGuard guard_;
};

}  // namespace ringlet
