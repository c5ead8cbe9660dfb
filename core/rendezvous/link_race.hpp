#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/payload_sink.hpp"
#include "core/engine/session.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct LinkRaceOptions {
  LinkRequest request{};
  wire::Propose proposal{};                  // from this rank to `proposal.to`
  std::vector<wire::Endpoint> targets{};     // the peer's addresses, the likeliest first
  std::vector<wire::Endpoint> interfaces{};  // this machine's addresses
  bool only_these_interfaces = false;        // a link that leaves by another is dropped
  SessionOptions session{};
};

/// Gives a dialler the fastest link to one peer. It dials all of the peer's addresses, with small head starts for the likelier ones. Each
/// link that is authenticated and reaches the right rank of the right world is a candidate. Some hundred milliseconds after the first
/// one the others are not waited for; where several are there, small probes and then a row of long ones measure them, and the best
/// is asked to be the link. Both sides take the same one: the acceptor the one over which the dialler confirms that it has the acceptor's
/// word. If a candidate dies before that, the next best is asked. While none is there all addresses are dialled again, until it is
/// destroyed. Belongs to the loop's thread.
class LinkRace final : private SessionOwner {
 public:
  struct Winner {
    std::unique_ptr<Session> session;  // to be adopted before the callback returns
    wire::Path path;
  };
  /// Runs once, from the loop: the winner, or `mismatch` or `protocol_error` where no address leads, nor ever will, to the peer. The race
  /// is destroyed later, not in the call.
  using OnEnd = std::function<void(Result<Winner>)>;

  /// What a candidate may ask of the acceptor.
  static constexpr std::size_t kPings = 4, kRowLength = 16, kProbes = kPings + kRowLength, kPadding = 16 << 10;

  /// Both outlive it.
  LinkRace(EventLoop& loop, Dialler& dialler, LinkRaceOptions options, OnEnd on_end);
  ~LinkRace();
  LinkRace(const LinkRace&) = delete;
  LinkRace& operator=(const LinkRace&) = delete;

  const std::string& last_error() const { return last_error_; }

 private:
  enum class Stage : std::uint8_t { gathering, pinging, measuring, asking, over };
  struct Candidate;
  class Sink;

  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;

  void dial(Candidate& candidate);
  void dial_later(Candidate& candidate, Duration pause);
  void on_dialled(Candidate& candidate, Result<std::unique_ptr<Link>> link);
  void on_message(Candidate& candidate, const wire::ControlMessage& message);
  void on_welcome(Candidate& candidate, std::uint32_t rank);
  void on_probe(Candidate& candidate, const wire::LinkProbe& answer);
  void lose(Candidate& candidate, const Status& status, bool for_good);
  void close(Candidate& candidate);
  Candidate& candidate_of(const Session& session);
  void send(Candidate& candidate, const wire::ControlMessage& message);

  void become_ready(Candidate& candidate);
  void stop_gathering();
  void begin_pinging();
  void ping(Candidate& candidate);
  void end_pinging();
  void stop_pinging();
  void measure_next();
  void end_row();
  void ask_best();
  void give_current_up();
  void start_again();
  bool given_up() const;
  std::vector<Candidate*> ready() const;
  void set_timer(Duration delay, void (LinkRace::*member)());
  void end(Result<Winner> outcome);

  EventLoop& loop_;
  Dialler& dialler_;
  const LinkRaceOptions options_;
  OnEnd on_end_;
  std::vector<std::unique_ptr<Candidate>> candidates_;  // in the order of the targets
  Candidate* current_ = nullptr;                        // being measured, or asked
  Stage stage_ = Stage::gathering;
  TimerId timer_ = 0;
  std::string last_error_;
  std::shared_ptr<bool> alive_;
};

}  // namespace ringlet
