#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/agent/messages.hpp"
#include "tools/launch/line_splitter.hpp"
#include "tools/launch/output_stream.hpp"

namespace ringlet::agent {

/// Shows the output of ranks on other machines, line by line, on this process' stdout and stderr. Bounded: what a machine has sent is told
/// as taken only when the stream is not congested, and a machine sends no more than its window before that.
class RunOutput {
 public:
  struct Options {
    bool prefix = true;  // "[rank machine] " before each line
    bool stdout_to_stderr = false;
    std::string message_prefix = "ringlet run";
  };
  /// `on_taken`: so much of a machine's output has been shown; `on_lost`: errno, where stdout or stderr takes no more bytes; `on_idle`:
  /// everything is written. All may run inside a call.
  struct Events {
    std::function<void(std::size_t machine, std::size_t bytes)> on_taken;
    std::function<void(int error)> on_lost;
    std::function<void()> on_idle;
  };

  RunOutput(uv_loop_t* loop, Options options, Events events);

  /// Before the first show(): numbers are as wide as that of the last rank.
  void set_world_size(int ranks) { world_size_ = ranks; }
  void show(std::size_t machine, const std::string& machine_name, const Output& output);
  /// The ranks' last lines may lack their ends.
  void finish();
  /// A line of the command's own, on stderr.
  void say(const std::string& text);
  /// Drops what is not written yet and all that comes later.
  void discard();
  bool idle() const;

 private:
  struct Source {
    launch::LineSplitter splitter;
    launch::OutputStream* target;
  };
  void settle(const launch::OutputStream& stream);
  std::string prefix_of(std::uint32_t rank, const std::string& machine_name) const;

  const Options options_;
  const Events events_;
  launch::OutputStream err_;
  std::optional<launch::OutputStream> separate_out_;
  std::map<std::pair<std::uint32_t, bool>, Source> sources_;                         // by rank and whether stderr
  std::map<std::pair<const launch::OutputStream*, std::size_t>, std::size_t> owed_;  // bytes, by stream and machine
  std::string lines_;                                                                // scratch
  int world_size_ = 1;
};

}  // namespace ringlet::agent
