#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/time.hpp"
#include "tools/agent/messages.hpp"

namespace ringlet::agent {

/// What a crew tells. Each runs on the loop, never inside a call of the crew, which may not be destroyed inside.
struct CrewEvents {
  std::function<void(Output)> on_output;
  std::function<void(const Exit&)> on_exit;      // once for each rank that was started, in the order of their deaths
  std::function<void(const Failed&)> on_failed;  // a rank could not become the program
  std::function<void()> on_over;                 // no process is left, and all output has been told; once
};

/// The ranks of one job on this machine. Destroying it kills what is left of them. Belongs to the loop's thread.
class RankCrew {
 public:
  virtual ~RankCrew() = default;
  /// Listens where the ranks of the job shall meet; rank 0, started here, inherits the socket. Gives the port.
  virtual Result<std::uint16_t> open_coordinator(const std::string& host) = 0;
  /// Starts the ranks and gives their process ids. Where it fails, what was started is ended; on_over follows either way.
  virtual Result<std::vector<std::uint32_t>> start(const Start& start) = 0;
  /// To all ranks and what they have started.
  virtual void send(int signal_number) = 0;
  /// The same, and SIGKILL after `grace` to those that are left.
  virtual void stop(int signal_number, Duration grace) = 0;
  /// While held, the ranks' output stays in their pipes.
  virtual void hold_output(bool held) = 0;
};

}  // namespace ringlet::agent
