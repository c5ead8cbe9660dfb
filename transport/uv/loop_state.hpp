#pragma once

// This is the only header that includes uv.h; only the .cpp files of this folder include it.
#include <uv.h>

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/poll_source.hpp"

namespace ringlet::uv {

class SocketWatch;

/// A place in one of the loop's circular lists, or the head of one. Leaves its list on destruction.
class ListNode {
 public:
  explicit ListNode(SocketWatch* owner = nullptr) noexcept : owner_(owner) {}
  ~ListNode() { unlink(); }
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;

  bool linked() const noexcept { return next_ != this; }
  SocketWatch& first() const noexcept { return *next_->owner_; }
  void unlink() noexcept;
  /// Moves this node to the end of the list of `head`.
  void move_to_end_of(ListNode& head) noexcept;
  /// Moves all members of the list of `head` to the list of this node, which must be an empty list's head.
  void take_all_of(ListNode& head) noexcept;

 private:
  SocketWatch* owner_;
  ListNode* previous_ = this;
  ListNode* next_ = this;
};

/// The implementation of UvLoop: the uv loop, the queues, and the order in which a turn serves them.
class LoopState {
 public:
  LoopState();
  ~LoopState();
  LoopState(const LoopState&) = delete;
  LoopState& operator=(const LoopState&) = delete;

  Instant now() const;
  void defer(Task task) { deferred_.push_back(std::move(task)); }
  TimerId after(Duration delay, Task task);
  void cancel(TimerId id);
  void add_source(PollSource& source) { sources_.push_back(&source); }
  void remove_source(PollSource& source);
  void post(Task task);
  void wake();
  bool poll();
  void wait();
  bool flush();
  void keep_failure(std::exception_ptr failure) noexcept;
  void cut_off() noexcept;

  uv_loop_t* uv() noexcept { return &loop_; }
  /// Runs a callback of uv. All of them run this way, so that `now` is up to date and the data that a callback gives to links is sent
  /// before the next callback runs; and so that an exception does not cross uv, which is C, but is thrown again behind it.
  template <class Callback>
  void dispatch(Callback callback);

 private:
  friend class SocketWatch;
  struct Turn;

  void read_clock();
  bool run_due_timers();
  bool run_posted();
  void take_posted();
  bool flush_round();
  bool drain();
  bool receive_directly();
  bool poll_sources();
  bool prepare_sources_to_block();
  void wake_sources(std::size_t count);
  void forget_removed_sources();
  bool run_uv(uv_run_mode mode);
  void arm_timer();

  uv_loop_t loop_{};
  uv_async_t async_{};
  uv_timer_t timer_{};
  std::exception_ptr failure_;  // thrown by a callback of the current uv_run
  bool in_turn_ = false;
  bool dispatched_ = false;  // a callback ran in the current uv_run
  Instant now_{};
  int turns_without_uv_ = 0;
  int waiting_writers_ = 0;  // sockets that wait to become writable

  ListNode woken_;      // links that may have something to send
  ListNode receivers_;  // links whose sockets poll() reads directly
  std::size_t receiver_count_ = 0;
  std::vector<PollSource*> sources_;  // null where one was removed in the current round
  bool polling_sources_ = false;
  bool source_removed_ = false;

  std::vector<Task> deferred_;
  std::vector<Task> running_;
  using TimerKey = std::pair<std::int64_t, TimerId>;  // deadline first
  std::map<TimerKey, Task> timers_;
  std::unordered_map<TimerId, std::int64_t> deadlines_;
  TimerId last_timer_ = 0;
  std::int64_t armed_for_ = -1;  // deadline that the uv timer is set for; -1: none

  std::mutex mutex_;  // guards posted_
  std::vector<Task> posted_;
  std::vector<Task> running_posted_;
  std::atomic<bool> has_posted_{false};
};

/// A socket, the uv handle that watches it, and its places in the loop's lists. It has one owner, which ends the ownership by drop(); the
/// memory is freed when uv has closed the handle, too. uv does this only between callbacks, so a member function of the object may call
/// drop().
class SocketWatch {
 public:
  /// Closes the socket at once and ends all callbacks.
  void drop() noexcept;
  bool closed() const noexcept { return socket_ < 0; }

 protected:
  explicit SocketWatch(LoopState& loop) noexcept : loop_(loop) {}
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;
  virtual ~SocketWatch() = default;

  /// Takes over `socket` and returns 0, or returns a uv error and leaves `socket` to the caller.
  int open(int socket);
  /// Sets the events to watch for: a combination of UV_READABLE and UV_WRITABLE, or 0. A change costs two system calls; setting the same
  /// again costs none.
  void set_interest(int events);
  int interest() const noexcept { return interest_; }
  /// Stops watching and closes the socket. May be called more than once.
  void close_socket() noexcept;
  /// Stops watching, and hands the socket to the caller, who must close it.
  int release_socket() noexcept;
  int socket() const noexcept { return socket_; }
  LoopState& loop() noexcept { return loop_; }

  /// Makes the loop call flush_output() at the end of the current dispatch. Does nothing if the socket is closed, because the loop may no
  /// longer exist then.
  void mark_woken() noexcept {
    if (!closed()) woken_node_.move_to_end_of(loop_.woken_);
  }
  /// While this is on, poll() calls receive_directly().
  void set_direct_receiving(bool on) noexcept;

 private:
  friend class LoopState;
  /// `broken` means that the system reports an error on the socket; the interest has become 0 then.
  virtual void on_ready(int events, bool broken) = 0;
  virtual void flush_output() {}
  /// Returns whether there was anything to receive.
  virtual bool receive_directly() { return false; }
  void free_if_unused() noexcept;

  LoopState& loop_;
  uv_poll_t handle_{};
  int socket_ = -1;
  int interest_ = 0;
  bool owned_ = true;
  bool handle_open_ = false;
  ListNode woken_node_{this};
  ListNode receiver_node_{this};
};

template <class Callback>
void LoopState::dispatch(Callback callback) {
  if (failure_) return;
  read_clock();
  dispatched_ = true;
  try {
    callback();
    drain();
  } catch (...) {
    keep_failure(std::current_exception());
  }
}

}  // namespace ringlet::uv
