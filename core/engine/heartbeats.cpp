#include "core/engine/heartbeats.hpp"

#include "core/engine/delay_text.hpp"

namespace ringlet {

Status Heartbeats::on_tick(Instant now) {
  // If this process itself was suspended, the frames that others sent meanwhile have not been read yet.
  const bool stood_still = now - last_tick_ > options_.heartbeat_timeout / 2;
  last_tick_ = now;
  Status outcome;
  peers_.for_each_session([&](Session& session) {
    if (!outcome.ok() || session.closed() || session.receive_has_ended() || session.goodbye_received() || session.given_up()) return;
    if (stood_still) session.touch_received(now);
    outcome = check(session, now);
  });
  return outcome;
}

Status Heartbeats::check(Session& session, Instant now) const {
  const Duration silence = now - session.last_sign_of_life();
  if (silence >= patience_with(session.peer()))
    return {Errc::peer_lost,
            peers_.text_of(session.peer()) + " has been silent towards " + peers_.text_of(options_.rank) + " for " + seconds_text(silence) +
                "; it hangs, or the network between the two does",
            session.peer()};
  // Bytes that wait to be sent will show that this rank is alive, so a heartbeat behind them is not needed.
  if (session.has_unsent() || now - session.last_sent() < options_.heartbeat_timeout / kHeartbeatsPerTimeout) return {};
  FrameHeader heartbeat;
  heartbeat.kind = FrameKind::heartbeat;
  session.send_owned(heartbeat, {});
  return {};
}

/// A relay that hangs also silences the guests behind it. Guests are given more time, so that the relay is blamed first.
Duration Heartbeats::patience_with(int peer) const {
  const Duration timeout = options_.heartbeat_timeout;
  return options_.is_relayed(options_.rank, peer) ? timeout + timeout / kHeartbeatsPerTimeout * 2 : timeout;
}

}  // namespace ringlet
