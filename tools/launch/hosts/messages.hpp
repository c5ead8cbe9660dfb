#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/launch/launch_options.hpp"

namespace ringlet::launch {

/// What a launcher and its deputy on a host say to each other over a pipe or ssh: a length (4 bytes, little-endian, of what follows), a
/// kind (1 byte), and a body. Bodies are MessagePack, which takes words of any bytes, but those of output and standard input, which are
/// bytes.
enum class MessageKind : std::uint8_t {
  hello = 1,    // to the launcher, first
  job,          // to the deputy: what to start
  ready,        // to the launcher: the job can be started
  refused,      // to the launcher, last: it cannot
  start,        // to the deputy, when all are ready
  output,       // to the launcher
  said,         // to the launcher: a sentence for the user
  exit,         // to the launcher: how a rank ended
  gone,         // to the launcher: nothing of the rank is left, and its output is complete
  over,         // to the launcher, last: nothing of any rank is left
  signal,       // to the deputy: pass it on
  stop,         // to the deputy: end all ranks
  input,        // to the deputy: for the rank that reads standard input; empty: its end
  input_taken,  // to the launcher: it may send the next
  alive,        // to the deputy, from time to time
};

inline constexpr int kDeputyProtocol = 1;
/// The launcher passes over whatever a login prints before this.
inline constexpr std::string_view kGreeting = "\x01ringlet-deputy\n";
inline constexpr int kMaxPort = 65535;
inline constexpr std::size_t kMessageHead = 5;  // length and kind
inline constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;
/// A deputy that hears nothing for so long takes its launcher for dead.
inline constexpr std::chrono::seconds kLauncherSilence{60};
inline constexpr std::chrono::seconds kAliveInterval{10};

struct Hello {
  int protocol = kDeputyProtocol;
  std::string launcher_address;  // as ssh's server sees the two ends; empty where ssh is not between
  std::string own_address;
};

struct Job {
  LaunchOptions options;              // what of it concerns one host
  std::string preferred_directory;    // to run in where no directory is asked for and this one exists
  std::optional<ListenAt> listen_at;  // rank 0 is there
};

struct Refusal {
  int exit_code = 1;
  std::string text;
};

struct ExitNote {
  RankExit exit;
  std::optional<int> exec_error;
};

struct OutputPart {
  int rank = 0;
  bool error = false;
  std::string_view bytes;  // of the message's body
};

struct StopOrder {
  int signal_number = 0;
  std::chrono::milliseconds grace{0};
};

std::string encode(MessageKind kind, std::string_view body = {});
std::string encode(const Hello& hello);
std::string encode(const Job& job);
std::string encode(const Refusal& refusal);
std::string encode(const ExitNote& note);
std::string encode(const OutputPart& part);
std::string encode(const StopOrder& order);
std::string encode_number(MessageKind kind, int number);

/// They throw `LaunchError` where the body is not what it should be, or a number is out of its range.
Hello parse_hello(std::string_view body);
Job parse_job(std::string_view body);
Refusal parse_refusal(std::string_view body);
ExitNote parse_exit(std::string_view body);
OutputPart parse_output(std::string_view body);
StopOrder parse_stop(std::string_view body);
/// From 0 to `most`.
int parse_number(std::string_view body, int most);

/// Cuts bytes, in whatever pieces they come, into messages.
class MessageReader {
 public:
  using OnMessage = std::function<void(MessageKind, std::string_view body)>;

  /// With `greeted` all before the greeting is passed over.
  explicit MessageReader(bool greeted) : waits_for_greeting_(greeted) {}

  /// `on_message` borrows the body until it returns. Throws `LaunchError` where a length is beyond the limit. What comes after an error, be
  /// it thrown by `on_message`, is passed over.
  void feed(std::string_view bytes, const OnMessage& on_message);

 private:
  void take(std::string_view bytes, const OnMessage& on_message);

  bool waits_for_greeting_;
  bool broken_ = false;
  std::string buffer_;
};

}  // namespace ringlet::launch
