#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/rendezvous/link_candidate.hpp"
#include "core/rendezvous/link_measurement.hpp"

namespace ringlet {

struct LinkRaceOptions {
  std::vector<wire::Endpoint> targets{};  // the peer's addresses, the likeliest first
  LinkCandidateOptions candidate{};       // options for each of them
};

/// Gives a dialler the fastest link to one peer. It dials all of the peer's addresses, with small head starts for the likelier ones, and
/// proposes each link to the rank that answers. It waits for other links for some hundred milliseconds after the first one has been
/// accepted as a candidate; where there are several then, they are measured, and the best one is nominated. Both sides take the same link:
/// the acceptor takes the one over which the dialler confirms the accepted nomination. If a candidate dies before that, the next best is
/// nominated. While there is none, all addresses are dialled again, until the race is destroyed. Belongs to the loop's thread.
class LinkRace {
 public:
  struct Winner {
    std::unique_ptr<Session> session;  // to be adopted before the callback returns
    wire::Path path;
  };
  /// Runs once, from the loop, with the winner, or with `mismatch` or `protocol_error` where no address leads to the peer and dialling
  /// again would not help. The race may not be destroyed inside the call.
  using OnEnd = std::function<void(Result<Winner>)>;

  /// Loop and dialler outlive it.
  LinkRace(EventLoop& loop, Dialler& dialler, LinkRaceOptions options, OnEnd on_end);
  ~LinkRace();
  LinkRace(const LinkRace&) = delete;
  LinkRace& operator=(const LinkRace&) = delete;

  const Status& last_failure() const { return last_failure_; }

 private:
  enum class Stage : std::uint8_t { gathering, measuring, nominating, over };

  void on_ready(LinkCandidate& candidate);
  void on_probe_answer(LinkCandidate& candidate, const wire::LinkProbe& answer);
  void on_accepted(LinkCandidate& candidate);
  void on_lost(LinkCandidate& candidate, const Status& status);

  void stop_gathering();
  void gather_again();
  void nominate_best();
  void give_nominee_up();
  std::vector<LinkCandidate*> ready() const;
  bool any_pending() const;
  void set_timer(Duration delay, void (LinkRace::*member)());
  void cancel_timer();
  void end(Result<Winner> outcome);

  EventLoop& loop_;
  const LinkRaceOptions options_;
  const LinkCandidate::Callbacks callbacks_;
  OnEnd on_end_;
  std::vector<std::unique_ptr<LinkCandidate>> candidates_;  // in the order of the targets
  std::unique_ptr<LinkMeasurement> measurement_;            // of those that were ready when gathering stopped
  LinkCandidate* nominee_ = nullptr;
  Stage stage_ = Stage::gathering;
  TimerId timer_ = 0;
  Status last_failure_;
};

}  // namespace ringlet
