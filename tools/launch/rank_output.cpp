#include "tools/launch/rank_output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "native/output_file.hpp"
#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

namespace {

// Two descriptors of one file get one queue, or lines of the two would be mixed within.
bool same_file(int left, int right) {
  struct stat a{}, b{};
  return ::fstat(left, &a) == 0 && ::fstat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

RankOutput::RankOutput(uv_loop_t* loop, Options options, Events events)
    : options_(std::move(options)), events_(std::move(events)), err_(loop, STDERR_FILENO), streams_{&err_} {
  if (!options_.stdout_to_stderr && !same_file(STDOUT_FILENO, STDERR_FILENO))
    streams_.push_back(&separate_out_.emplace(loop, STDOUT_FILENO));
  for (OutputStream* stream : streams_) {
    stream->on_failed = [this, stream](int error) {
      settle(*stream);
      // What is said on a stderr of its own may be lost, as by a full disk.
      if (error == EPIPE || stream == streams_.back()) events_.on_lost(error);
    };
    stream->on_drained = [this, stream] {
      settle(*stream);
      if (idle()) events_.on_idle();
    };
  }
}

void RankOutput::keep_logs(const std::string& directory, int ranks) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw LaunchError(2, fmt::format("--output-dir {}: cannot create it: {}", directory, error.message()));
  for (int rank = 0; rank < ranks; ++rank) {
    std::string path = std::filesystem::path(directory) / fmt::format("rank-{}.log", rank);
    const auto refuse = [&](std::string_view why) {
      throw LaunchError(2, fmt::format("--output-dir {}: cannot write {}: {}", directory, path, why));
    };
    if (const auto obstacle = native::find_obstacle(path)) refuse(*obstacle);
    UniqueFd file(native::open_alone(path));
    if (!file) refuse(errno == EWOULDBLOCK ? "another process is writing it" : std::strerror(errno));
    logs_.push_back({std::move(file), std::move(path)});
  }
}

void RankOutput::attach(const std::vector<job::RankExit>& ranks, bool prefix) {
  const int world_size = static_cast<int>(ranks.size());
  for (std::size_t i = sources_.size() / 2; i < ranks.size(); ++i)
    for (OutputStream* target : {streams_.back(), &err_}) {
      const job::RankExit& rank = ranks[i];
      Source& source = sources_.emplace_back(Source{std::nullopt, target});
      // A lone rank without prefix mixes with no other: prompts and progress bars appear as they are written.
      if (prefix || world_size > 1) source.splitter.emplace(prefix ? job::rank_prefix(rank.rank, world_size, rank.machine) : "");
    }
}

void RankOutput::show(std::size_t machine, const job::Output& output) {
  Source& source = sources_[std::size_t{output.rank} * 2 + (output.error ? 1 : 0)];
  if (output.data.empty()) return finish(source);
  if (!logs_.empty()) write_log(output.rank, output.data);
  owed_[{source.target, machine, output.error}] += output.data.size();
  lines_.clear();
  if (source.splitter) source.splitter->feed(output.data, lines_);
  source.target->write(source.splitter ? std::string_view(lines_) : std::string_view(output.data));
  if (!source.target->congested()) settle(*source.target);
}

void RankOutput::finish(Source& source) {
  if (!source.splitter) return;
  lines_.clear();
  source.splitter->finish(lines_);
  source.target->write(lines_);
}

void RankOutput::finish() {
  for (Source& source : sources_) finish(source);
}

void RankOutput::settle(const OutputStream& stream) {
  for (auto& [key, bytes] : owed_)
    if (std::get<0>(key) == &stream && bytes > 0) events_.on_taken(std::get<1>(key), std::get<2>(key), std::exchange(bytes, 0));
}

void RankOutput::say(const std::string& text) { err_.write(options_.message_prefix + ": " + text + "\n"); }

void RankOutput::discard() {
  for (OutputStream* stream : streams_) {
    stream->discard();
    settle(*stream);
  }
}

bool RankOutput::idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const OutputStream* stream) { return stream->idle(); });
}

void RankOutput::write_log(std::size_t rank, std::string_view bytes) {
  Log& log = logs_[rank];
  while (log.file && !bytes.empty()) {
    const ssize_t count = ::write(log.file.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      say(fmt::format("cannot write {}: {}; the rest of rank {}'s output is not kept there", log.path, std::strerror(errno), rank));
      log.file.reset();
    }
  }
}

}  // namespace ringlet::launch
