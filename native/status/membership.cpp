#include "native/status/membership.hpp"

#include <sys/socket.h>

#include <utility>

#include "native/status/status_report.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::native {

void MembershipLog::enter(GroupState state) {
  const std::lock_guard lock(mutex_);
  state.lost = state_.lost;
  state.joined = state_.joined;
  if (state.change) {
    state.lost += state.change->lost.size();
    state.joined += static_cast<std::uint64_t>(state.change->joined);
  }
  GroupState told = state;
  if (!state.change) state.change = std::move(state_.change);
  state_ = std::move(state);
  tell(membership_report(told));
}

void MembershipLog::end_by_loss(int rank) {
  const std::lock_guard lock(mutex_);
  tell(loss_report(rank));
}

/// Holds the mutex.
void MembershipLog::tell(const std::string& line) {
  if (!socket_) return;
  const ssize_t sent = ::send(socket_.get(), line.data(), line.size(), MSG_DONTWAIT | uv::kSendFlags);
  if (sent != static_cast<ssize_t>(line.size())) socket_.reset();
}

GroupState MembershipLog::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace ringlet::native
