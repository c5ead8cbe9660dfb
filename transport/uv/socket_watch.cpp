#include <unistd.h>

#include <utility>

#include "transport/uv/loop_state.hpp"

namespace ringlet::uv {

void ListNode::unlink() noexcept {
  previous_->next_ = next_;
  next_->previous_ = previous_;
  previous_ = next_ = this;
}

void ListNode::move_to_end_of(ListNode& head) noexcept {
  unlink();
  previous_ = head.previous_;
  next_ = &head;
  previous_->next_ = this;
  head.previous_ = this;
}

void ListNode::take_all_of(ListNode& head) noexcept {
  if (!head.linked()) return;
  next_ = head.next_;
  previous_ = head.previous_;
  next_->previous_ = previous_->next_ = this;
  head.next_ = head.previous_ = &head;
}

int SocketWatch::open(int socket) {
  if (const int error = uv_poll_init(&loop_.loop_, &handle_, socket); error != 0) return error;
  handle_.data = this;
  handle_open_ = true;
  socket_ = socket;
  return 0;
}

void SocketWatch::set_interest(int events) {
  if (events == interest_ || closed()) return;
  loop_.waiting_writers_ += ((events & UV_WRITABLE) != 0) - ((interest_ & UV_WRITABLE) != 0);
  interest_ = events;
  if (events == 0) {
    uv_poll_stop(&handle_);
    return;
  }
  uv_poll_start(&handle_, events, [](uv_poll_t* handle, int status, int ready) {
    auto& self = *static_cast<SocketWatch*>(handle->data);
    self.loop_.dispatch([&] {
      // uv stops watching a socket when it reports an error on it, so `interest_` must become 0 before an interest is set again.
      if (status < 0) self.set_interest(0);
      self.on_ready(ready, status < 0);
    });
  });
}

void SocketWatch::set_direct_receiving(bool on) noexcept {
  if (on == receiver_node_.linked()) return;
  if (on) {
    receiver_node_.move_to_end_of(loop_.receivers_);
    ++loop_.receiver_count_;
  } else {
    receiver_node_.unlink();
    --loop_.receiver_count_;
  }
}

int SocketWatch::release_socket() noexcept {
  if (closed()) return -1;
  set_interest(0);
  set_direct_receiving(false);
  woken_node_.unlink();
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_), [](uv_handle_t* handle) {
    auto& self = *static_cast<SocketWatch*>(handle->data);
    self.handle_open_ = false;
    self.free_if_unused();
  });
  return std::exchange(socket_, -1);
}

void SocketWatch::close_socket() noexcept {
  if (const int socket = release_socket(); socket >= 0) ::close(socket);
}

void SocketWatch::drop() noexcept {
  close_socket();
  owned_ = false;
  free_if_unused();
}

void SocketWatch::free_if_unused() noexcept {
  if (!owned_ && !handle_open_) delete this;
}

}  // namespace ringlet::uv
