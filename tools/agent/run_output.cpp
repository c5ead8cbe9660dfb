#include "tools/agent/run_output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ringlet::agent {

namespace {

// Two descriptors of one file get one queue, or lines of the two would be mixed within.
bool same_file(int left, int right) {
  struct stat a{}, b{};
  return ::fstat(left, &a) == 0 && ::fstat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

RunOutput::RunOutput(uv_loop_t* loop, Options options, Events events)
    : options_(std::move(options)), events_(std::move(events)), err_(loop, STDERR_FILENO) {
  if (!options_.stdout_to_stderr && !same_file(STDOUT_FILENO, STDERR_FILENO)) separate_out_.emplace(loop, STDOUT_FILENO);
  for (launch::OutputStream* stream : {&err_, separate_out_ ? &*separate_out_ : nullptr}) {
    if (stream == nullptr) continue;
    stream->on_failed = [this, stream](int error) {
      settle(*stream);
      events_.on_lost(error);
    };
    stream->on_drained = [this, stream] {
      settle(*stream);
      if (idle()) events_.on_idle();
    };
  }
}

std::string RunOutput::prefix_of(std::uint32_t rank, const std::string& machine_name) const {
  if (!options_.prefix) return "";
  return fmt::format("[{:>{}} {}] ", rank, fmt::formatted_size("{}", world_size_ - 1), machine_name);
}

void RunOutput::show(std::size_t machine, const std::string& machine_name, const Output& output) {
  launch::OutputStream& target = output.error || !separate_out_ ? err_ : *separate_out_;
  const auto place =
      sources_.try_emplace({output.rank, output.error}, Source{launch::LineSplitter(prefix_of(output.rank, machine_name)), &target});
  lines_.clear();
  place.first->second.splitter.feed(output.data, lines_);
  owed_[{&target, machine}] += output.data.size();
  target.write(lines_);
  if (!target.congested()) settle(target);
}

void RunOutput::settle(const launch::OutputStream& stream) {
  for (auto& [key, bytes] : owed_) {
    if (key.first != &stream || bytes == 0) continue;
    events_.on_taken(key.second, std::exchange(bytes, 0));
  }
}

void RunOutput::finish() {
  for (auto& [key, source] : sources_) {
    lines_.clear();
    source.splitter.finish(lines_);
    source.target->write(lines_);
  }
}

void RunOutput::say(const std::string& text) { err_.write(options_.message_prefix + ": " + text + "\n"); }

void RunOutput::discard() {
  for (launch::OutputStream* stream : {&err_, separate_out_ ? &*separate_out_ : nullptr}) {
    if (stream == nullptr) continue;
    stream->discard();
    settle(*stream);
  }
}

bool RunOutput::idle() const { return err_.idle() && (!separate_out_ || separate_out_->idle()); }

}  // namespace ringlet::agent
