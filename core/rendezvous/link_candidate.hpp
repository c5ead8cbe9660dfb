#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "core/rendezvous/link_race.hpp"

// For the race's own sources.
namespace ringlet {

struct LinkRace::Candidate {
  enum class State : std::uint8_t { idle, dialling, greeting, ready, lost, never };
  wire::Endpoint target;
  State state = State::idle;
  std::unique_ptr<Session> session{};
  std::shared_ptr<Sink> sink{};
  wire::Path path{};
  Duration pause = Duration::milliseconds(20);
  int refusals = 0;
  TimerId timer = 0;
  Instant dialled{}, sent{};
  std::uint32_t asked = 0, answered = 0;  // probes
  std::uint32_t row_answered = 0;

  /// Until it is dialled again: longer each time.
  Duration next_pause() { return std::exchange(pause, std::min(pause * 2, Duration::seconds(1))); }
};

class LinkRace::Sink final : public GatheringSink {
 public:
  Sink(LinkRace& race, Candidate& candidate) : race_(race), candidate_(candidate) {}
  void frame_ended() override {
    if (const auto message = wire::decode_control(gathered())) return race_.on_message(candidate_, *message);
    race_.lose(candidate_, {Errc::protocol_error, to_text(candidate_) + " sent what is no message"}, true);
  }

  static std::string to_text(const Candidate& candidate) {
    return to_string(Address{candidate.target.host, static_cast<std::uint16_t>(candidate.target.port)});
  }

 private:
  LinkRace& race_;
  Candidate& candidate_;
};

}  // namespace ringlet
