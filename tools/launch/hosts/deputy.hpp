#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/launch/hosts/messages.hpp"
#include "tools/launch/local_ranks.hpp"
#include "tools/launch/output_stream.hpp"
#include "tools/launch/pipe_reader.hpp"
#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// Starts and watches the ranks of one host for a launcher elsewhere, which speaks to it over its standard input and output. When that one
/// is gone, or silent for a minute, it ends them.
class Deputy {
 public:
  explicit Deputy(std::string helper_path);

  /// Until no process of the ranks is left; to be called once. Returns the exit code.
  int run();

 private:
  struct Rank {
    int number = 0;
    std::vector<std::unique_ptr<PipeReader>> readers;
    bool gone = false;  // no process is left
    bool told = false;  // and the launcher knows
  };

  void on_bytes(std::string_view bytes);
  void on_message(MessageKind kind, std::string_view body);
  void prepare(Job job);
  void start(std::string coordinator);
  void attach(int rank, RankProcess::Pipes pipes);
  void forward(int rank, bool error, std::string_view bytes);
  void resume();
  void feed_input(std::string_view bytes);
  void on_launcher_gone();
  void expect_launcher();
  void refuse(const Refusal& refusal);
  void settle();

  UvLoop loop_;
  OutputStream out_;
  UvTimer silence_timer_;
  std::optional<PipeReader> in_;
  MessageReader messages_{false};
  LaunchOptions options_;
  CoordinatorSocket coordinator_;
  UniqueFd input_reader_, input_writer_;
  std::optional<OutputStream> input_;
  std::vector<Rank> ranks_;
  std::optional<LocalRanks> processes_;
  bool prepared_ = false;
  bool started_ = false;
  bool ended_ = false;      // nothing more will be started or read
  bool dismissed_ = false;  // the guard has been let go
  bool guard_gone_ = false;
  bool finished_ = false;
  int exit_code_ = 0;
};

/// `ringlet internal-deputy`.
int run_deputy();

}  // namespace ringlet::launch
