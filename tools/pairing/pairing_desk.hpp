#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/time.hpp"
#include "tools/pairing/host_session.hpp"

namespace ringlet::pairing {

struct DeskOptions {
  std::string group;
  std::string name;  // this machine's
  std::size_t digits = kMostDigits;
  Duration validity = Duration::seconds(120);  // of a code
  Duration patience = Duration::seconds(10);   // with one conversation
  std::size_t conversations = 4;               // at once, two of them from one address
  std::size_t per_second = 16;                 // that may begin, four of them from one address
  int wrong_codes = 3;                         // after so many it is over
};

/// Who may still try, with which code. A code takes part in one guess: whoever guesses wrong makes it void for all, also for those who were
/// in the midst of it, and after a pause that doubles from 1 s there is a new one. The first right guess gets the token, and nobody else.
/// Knows neither sockets nor clocks: bytes and time are passed in.
class PairingDesk {
 public:
  enum class State : std::uint8_t {
    shows_code,
    pauses,       // after a wrong code
    hands_out,    // waits for the receipt
    paired,       // over
    unconfirmed,  // over: the token was handed out, and the newcomer did not say that it saved it
    gave_up,      // over: too many wrong codes in a row
    expired       // over: nobody came in time
  };
  using Id = std::uint64_t;

  PairingDesk(DeskOptions options, Secret token, FillRandom random, Instant now);
  PairingDesk(const PairingDesk&) = delete;
  PairingDesk& operator=(const PairingDesk&) = delete;

  /// A newcomer has connected from this address. Nothing where nobody may come now, or too many have.
  std::optional<Id> admit(const std::string& address, Instant now);
  /// What came from it. Nothing happens where it is not here any more.
  void receive(Id id, ConstBytes bytes, Instant now);
  /// What is to be sent to it, also after it has gone.
  std::string take_outgoing(Id id);
  /// Whether its conversation goes on.
  bool has(Id id) const { return sessions_.count(id) != 0; }
  /// Its connection has ended.
  void leave(Id id, Instant now);
  /// Time has passed.
  void advance(Instant now);
  /// When advance() has something to do next.
  std::optional<Instant> next_deadline() const;

  State state() const noexcept { return state_; }
  bool over() const noexcept { return state_ >= State::paired; }
  const Secret& code() const noexcept { return code_; }
  /// How many codes there have been.
  int codes() const noexcept { return codes_; }
  int wrong_codes() const noexcept { return wrong_; }
  Duration pause() const noexcept { return pause_; }
  /// Who has got the token, as it says.
  const std::string& newcomer() const noexcept { return newcomer_; }

 private:
  struct Session {
    std::string address;
    Instant deadline;
    std::unique_ptr<HostSession> talk;
  };
  bool may_begin(const std::string& address, Instant now);
  void show_code(Instant now);
  void judge(Id id, Instant now);
  void on_wrong_code(Instant now);
  /// The conversation is over; what it has to say stays for take_outgoing().
  void close(Id id);
  void close_all_but(Id id);

  const DeskOptions options_;
  const Secret token_;
  const FillRandom random_;
  State state_ = State::shows_code;
  Secret code_;
  int codes_ = 0;
  int wrong_ = 0;
  Duration pause_{};
  Instant next_{};  // when the code expires, or the pause ends
  std::string newcomer_;
  std::map<Id, Session> sessions_;
  std::map<Id, std::string> last_words_;      // at most one for each connection
  std::map<std::string, std::size_t> begun_;  // in this second, by address
  std::size_t all_begun_ = 0;
  Instant second_{};  // when it began
  Id last_id_ = 0;
};

}  // namespace ringlet::pairing
