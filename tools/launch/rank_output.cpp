#include "tools/launch/rank_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/launch/launch_error.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::launch {

namespace {

// Two descriptors of one file get one queue, or lines of the two would be mixed within.
bool same_file(int left, int right) {
  struct stat a{}, b{};
  return ::fstat(left, &a) == 0 && ::fstat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

RankOutput::RankOutput(uv_loop_t* loop, const LaunchOptions& options, std::function<void(int)> on_lost, std::function<void()> on_progress)
    : loop_(loop), options_(options), on_progress_(std::move(on_progress)), err_(loop, STDERR_FILENO) {
  if (options.output_directory) open_logs(*options.output_directory, options.world_size);
  if (!options.stdout_to_stderr && !same_file(STDOUT_FILENO, STDERR_FILENO)) separate_out_.emplace(loop, STDOUT_FILENO);
  for (OutputStream* stream : {&err_, separate_out_ ? &*separate_out_ : nullptr}) {
    if (stream == nullptr) continue;
    stream->on_failed = [this, stream, on_lost](int error) {
      resume(*stream);
      on_lost(error);
    };
    stream->on_drained = [this, stream] {
      resume(*stream);
      on_progress_();
    };
  }
  sources_.resize(static_cast<std::size_t>(options.world_size) * 2);
}

void RankOutput::open_logs(const std::string& directory, int world_size) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw LaunchError(2, fmt::format("--output-dir {}: cannot create it: {}", directory, error.message()));
  for (int rank = 0; rank < world_size; ++rank) {
    std::string path = std::filesystem::path(directory) / fmt::format("rank-{}.log", rank);
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) throw LaunchError(2, fmt::format("--output-dir {}: cannot write {}: {}", directory, path, std::strerror(errno)));
    logs_.push_back({std::move(file), std::move(path)});
  }
}

void RankOutput::attach(int rank) {
  for (const auto channel : {Channel::out, Channel::err}) {
    Source& source = source_of(rank, channel);
    source.target = channel == Channel::out && separate_out_ ? &*separate_out_ : &err_;
    source.open = true;
    // A lone rank without prefix has nobody to mix with: prompts and progress bars appear as they are written.
    if (options_.prefix || options_.world_size > 1) source.splitter.emplace(make_prefix(options_, rank));
  }
}

void RankOutput::attach(int rank, UniqueFd out, UniqueFd err) {
  attach(rank);
  const auto read = [&](Channel channel, UniqueFd fd) {
    Source& source = source_of(rank, channel);
    source.reader = std::make_unique<PipeReader>(
        loop_, std::move(fd), [this, rank, &source](std::string_view bytes) { on_bytes(rank, source, bytes); },
        [this, &source] { on_end(source); });
  };
  read(Channel::out, std::move(out));
  read(Channel::err, std::move(err));
}

void RankOutput::feed(int rank, Channel channel, std::string_view bytes) {
  Source& source = source_of(rank, channel);
  if (source.open) on_bytes(rank, source, bytes);
}

void RankOutput::end_rank(int rank) {
  for (const auto channel : {Channel::out, Channel::err}) {
    Source& source = source_of(rank, channel);
    if (source.reader)
      source.reader->end_after_present_bytes();
    else if (source.open)
      on_end(source);
  }
}

RankOutput::Source& RankOutput::source_of(int rank, Channel channel) {
  return sources_[static_cast<std::size_t>(rank) * 2 + (channel == Channel::err ? 1 : 0)];
}

bool RankOutput::congested() const { return err_.congested() || (separate_out_ && separate_out_->congested()); }

void RankOutput::say(const std::string& text) { err_.write(options_.message_prefix + ": " + text + "\n"); }

void RankOutput::discard() {
  for (OutputStream* stream : {&err_, separate_out_ ? &*separate_out_ : nullptr}) {
    if (stream == nullptr) continue;
    stream->discard();
    resume(*stream);
  }
}

bool RankOutput::finished() const {
  for (const Source& source : sources_)
    if (source.open) return false;
  return err_.idle() && (!separate_out_ || separate_out_->idle());
}

void RankOutput::on_bytes(int rank, Source& source, std::string_view bytes) {
  if (!logs_.empty()) write_log(rank, bytes);
  if (source.splitter) {
    lines_.clear();
    source.splitter->feed(bytes, lines_);
    bytes = lines_;
  }
  source.target->write(bytes);
  if (!source.target->congested()) return;
  for (Source& other : sources_)
    if (other.reader && other.target == source.target) other.reader->pause();
}

void RankOutput::on_end(Source& source) {
  source.open = false;
  if (source.splitter) {
    lines_.clear();
    source.splitter->finish(lines_);
    source.target->write(lines_);
  }
  on_progress_();
}

void RankOutput::write_log(int rank, std::string_view bytes) {
  Log& log = logs_[static_cast<std::size_t>(rank)];
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

void RankOutput::resume(const OutputStream& stream) {
  for (Source& source : sources_)
    if (source.reader && source.target == &stream) source.reader->resume();
}

}  // namespace ringlet::launch
