#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/time.hpp"
#include "tools/job/messages.hpp"

namespace ringlet::job {

/// The events of a crew. Each runs on the loop, never inside a call of the crew, which may not be destroyed inside.
struct CrewEvents {
  std::function<void(Output)> on_output;                 // empty data: the last of this rank and stream
  std::function<void(const Exit&)> on_exit;              // once for each process, in the order of their deaths
  std::function<void(const Membership&)> on_membership;  // a rank has come into a group
  std::function<void(const std::string&)> on_notice;     // a sentence for the user
  std::function<void()> on_input_taken;                  // the last input has left
  std::function<void(TracePiece)> on_trace;              // of a process that has ended; the next one comes after take_trace()
  /// No process is left, and all output and all traces have been told; once. Of an elastic job after stop() only, since its ranks may be
  /// started again.
  std::function<void()> on_over;
};

/// The ranks of one job on this machine. Destroying it kills what is left of them. Belongs to the loop's thread.
class RankCrew {
 public:
  virtual ~RankCrew() = default;
  /// Listens where the ranks of the job shall meet; rank 0, started here next, inherits the socket. Gives the port.
  virtual Result<std::uint16_t> open_coordinator(const BindPort& where) = 0;
  /// Starts the ranks, unless they wait, and gives their process ids. Where it fails, what was started is ended; on_over follows either
  /// way.
  virtual Result<std::vector<std::uint32_t>> start(const StartRanks& start) = 0;
  /// Starts ranks of an elastic job that do not run. Where it fails, all are ended.
  virtual Result<std::vector<std::uint32_t>> restart(const RestartRanks& restart) = 0;
  /// To all ranks and what they have started.
  virtual void send(int signal_number) = 0;
  /// The same, and SIGKILL after `grace` to those that are left.
  virtual void stop(int signal_number, Duration grace) = 0;
  /// The same for these ranks of an elastic job, which may be started again.
  virtual void stop_ranks(const std::vector<std::uint32_t>& ranks, int signal_number, Duration grace) = 0;
  /// While held, what the ranks write to stderr (`error`) or stdout stays in their pipes.
  virtual void hold_output(bool error, bool held) = 0;
  /// For the rank that reads standard input; empty: its end.
  virtual void write_input(std::string_view bytes) = 0;
  /// The last piece of a trace has arrived.
  virtual void take_trace() = 0;
  /// Nobody wants traces any more.
  virtual void drop_traces() = 0;
};

}  // namespace ringlet::job
