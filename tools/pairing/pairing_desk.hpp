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
  std::string name;         // of this machine
  std::string machine_key;  // its public key, kMachineKeyBytes
  std::size_t digits = kMaxDigits;
  Duration validity = Duration::seconds(120);  // of a code
  Duration patience = Duration::seconds(10);   // limit for one conversation
  std::size_t conversations = 4;               // at the same time, two of them from one address
  std::size_t per_second = 16;                 // that may begin per second, four of them from one address
  int wrong_codes = 3;                         // in a row, after which the desk gives up
};

/// Decides which newcomers may try, and with which code. A code is for one guess. A wrong guess makes it void for all, including newcomers
/// in the middle of their guess. After a pause, which doubles from 1 s, there is a new code. Only the first right guess gets the token. The
/// desk uses neither sockets nor clocks: bytes and time are passed in.
class PairingDesk {
 public:
  enum class State : std::uint8_t {
    shows_code,
    pauses,       // there is no code after a wrong guess
    hands_out,    // waits for the receipt of the token
    paired,       // over: the newcomer has saved the token
    unconfirmed,  // over: the token was sent, but the newcomer did not say that it saved it
    gave_up,      // over: too many wrong codes in a row
    expired       // over: no newcomer succeeded in time
  };
  using Id = std::uint64_t;

  PairingDesk(DeskOptions options, Secret token, FillRandom random, Instant now);
  PairingDesk(const PairingDesk&) = delete;
  PairingDesk& operator=(const PairingDesk&) = delete;

  /// Admits a newcomer that has connected from this address. Returns nothing if none may come now, or if there are too many.
  std::optional<Id> admit(const std::string& address, Instant now);
  /// Takes bytes received from the newcomer. Does nothing if its conversation is over.
  void receive(Id id, ConstBytes bytes, Instant now);
  /// Returns the bytes to be sent to the newcomer, also after its conversation is over.
  std::string take_outgoing(Id id);
  /// Tells whether the newcomer's conversation goes on.
  bool has(Id id) const { return sessions_.count(id) != 0; }
  /// Call this when the newcomer's connection has ended.
  void leave(Id id, Instant now);
  /// Call this when time has passed.
  void advance(Instant now);
  /// Returns the time at which advance() next has work.
  std::optional<Instant> next_deadline() const;

  State state() const noexcept { return state_; }
  bool over() const noexcept { return state_ >= State::paired; }
  const Secret& code() const noexcept { return code_; }
  /// Returns the number of codes so far.
  int codes() const noexcept { return codes_; }
  int wrong_codes() const noexcept { return wrong_; }
  Duration pause() const noexcept { return pause_; }
  /// Returns the newcomer that got the token, with the name that it gave. Its key is there in the state `paired`.
  const PairedMachine& newcomer() const noexcept { return newcomer_; }

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
  /// Ends the conversation. Its last messages are kept for take_outgoing().
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
  Instant next_{};  // end of the code's validity or of the pause
  PairedMachine newcomer_;
  std::map<Id, Session> sessions_;
  std::map<Id, std::string> last_words_;      // one for each connection at most
  std::map<std::string, std::size_t> begun_;  // in this second, by address
  std::size_t all_begun_ = 0;
  Instant second_{};  // start of the second that is counted
  Id last_id_ = 0;
};

}  // namespace ringlet::pairing
