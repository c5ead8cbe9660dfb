#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/launch_options.hpp"
#include "tools/launch/line_splitter.hpp"
#include "tools/launch/output_stream.hpp"
#include "tools/launch/pipe_reader.hpp"

namespace ringlet::launch {

/// Brings the ranks' output to the launcher's stdout and stderr, line by line, and into log files. Bounded: while a stream of the
/// launcher is congested, the ranks' pipes that lead to it are not read.
class RankOutput {
 public:
  /// Creates the output directory and the log files, emptying old ones; throws `LaunchError`.
  /// `on_lost` gets errno when stdout or stderr takes no more bytes, `on_progress` is called when something has ended or drained.
  RankOutput(uv_loop_t* loop, const LaunchOptions& options, std::function<void(int)> on_lost, std::function<void()> on_progress);

  enum class Channel { out, err };

  /// A rank's output will come by `feed`.
  void attach(int rank);
  /// Bytes of an attached rank; the caller adds no more while `congested()`, which `on_progress` ends.
  void feed(int rank, Channel channel, std::string_view bytes);
  bool congested() const;
  /// Takes the read ends of a rank's stdout and stderr, and reads them itself.
  void attach(int rank, UniqueFd out, UniqueFd err);
  /// The rank has no process left: ends after what its pipes hold.
  void end_rank(int rank);
  /// A line of the launcher's own, on stderr.
  void say(const std::string& text);
  /// Drops what is not written yet and all that comes later.
  void discard();
  /// All ranks' output has been read to its end and written.
  bool finished() const;

 private:
  struct Source {
    std::unique_ptr<PipeReader> reader;
    std::optional<LineSplitter> splitter;  // none: bytes pass as they come
    OutputStream* target = nullptr;
    bool open = false;
  };
  struct Log {
    UniqueFd file;
    std::string path;
  };

  void open_logs(const std::string& directory, int world_size);
  Source& source_of(int rank, Channel channel);
  void on_bytes(int rank, Source& source, std::string_view bytes);
  void on_end(Source& source);
  void write_log(int rank, std::string_view bytes);
  void resume(const OutputStream& stream);

  uv_loop_t* loop_;
  LaunchOptions options_;
  std::function<void()> on_progress_;
  OutputStream err_;
  std::optional<OutputStream> separate_out_;  // none: stdout is the same file as stderr, or is not to be used
  std::vector<Log> logs_;                     // empty or one per rank
  std::vector<Source> sources_;               // two per rank
  std::string lines_;                         // scratch
};

}  // namespace ringlet::launch
