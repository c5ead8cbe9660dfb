#include "tools/launch/pipe_link.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

namespace {

constexpr std::size_t kMaxWriteParts = 16;

}  // namespace

PipeLink::PipeLink(UvLoop& loop, UniqueFd in, UniqueFd out, std::string peer_name)
    : loop_(loop), in_(std::move(in)), out_(std::move(out)), peer_name_(std::move(peer_name)) {
  int error = in_poll_.emplace().open(loop.uv(), in_.get());
  if (error == 0) error = out_poll_.emplace().open(loop.uv(), out_.get());
  if (error != 0) throw LaunchError(1, std::string("cannot watch a pipe: ") + uv_strerror(error));
}

PipeLink::~PipeLink() = default;

void PipeLink::start(LinkUser& user) {
  user_ = &user;
  wake();
}

void PipeLink::wake() {
  if (pending_ || ended_) return;
  pending_ = true;
  later(&PipeLink::go_on);
}

void PipeLink::finish_sending() {
  finishing_ = true;
  wake();
}

void PipeLink::end_after_present_bytes() {
  draining_ = true;
  wake();
}

void PipeLink::later(void (PipeLink::*task)()) {
  loop_.defer(alive_.wrap([this, task] { (this->*task)(); }));
}

void PipeLink::go_on() {
  pending_ = false;
  if (user_ == nullptr || ended_) return;
  const auto guard = alive_.watch();
  const bool full = transmit();
  if (!guard.alive() || ended_) return;
  const bool empty = receive();
  if (!guard.alive() || ended_) return;
  const auto watch = [this](UvPoll& poll, int event) {
    poll.start(event, [this, &poll] {
      poll.stop();
      wake();
    });
  };
  if (full) watch(*out_poll_, UV_WRITABLE);
  if (empty) watch(*in_poll_, UV_READABLE);
}

/// Returns whether the pipe is full.
bool PipeLink::transmit() {
  const auto guard = alive_.watch();
  while (guard.alive() && out_) {
    const auto parts = user_->to_send();
    if (parts.empty()) {
      if (!finishing_) return false;
      out_poll_.reset();
      out_.reset();
      return false;
    }
    std::array<iovec, kMaxWriteParts> vectors{};
    const std::size_t count = std::min(parts.size(), vectors.size());
    for (std::size_t i = 0; i < count; ++i) vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    const ssize_t bytes = ::writev(out_.get(), vectors.data(), static_cast<int>(count));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return true;
    if (bytes < 0) {
      end();
      return false;
    }
    user_->sent(static_cast<std::size_t>(bytes));
  }
  return false;
}

/// Returns whether the pipe is empty.
bool PipeLink::receive() {
  const auto guard = alive_.watch();
  while (guard.alive() && !ended_) {
    const auto parts = user_->to_receive();
    if (parts.empty()) return false;
    const ssize_t bytes = ::read(in_.get(), parts.front().data(), parts.front().size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN && !draining_) return true;
    if (bytes > 0) {
      user_->received(static_cast<std::size_t>(bytes));
    } else {
      end();
      return false;
    }
  }
  return false;
}

void PipeLink::end() {
  ended_ = true;
  in_poll_->stop();
  if (out_poll_) out_poll_->stop();
  on_pipe_end();
}

}  // namespace ringlet::launch
