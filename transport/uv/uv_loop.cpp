#include "transport/uv/uv_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <limits>
#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "transport/uv/loop_state.hpp"

namespace ringlet::uv {
namespace {

// poll() reads most sockets directly; in one of this many turns it also asks uv about the others. A turn of uv costs several times as much
// as a direct receive.
constexpr int kTurnsPerUvTurn = 16;
constexpr std::size_t kDirectReceivesPerTurn = 16;
// Bounds the rounds for tasks that defer further tasks without end: the remaining tasks wait until the sockets have had their turn.
constexpr int kFlushRounds = 16;

void check(int error) {
  if (error != 0)
    throw IoError({Errc::io_error, std::string("cannot open an event loop: ") + uv_strerror(error) +
                                       (error == UV_EMFILE ? "; allow this process more of them (ulimit -n)" : "")});
}

/// Where there is no room for all that a loop opens, uv ends the process instead of failing.
void check_free_descriptors() {
  std::array<std::array<int, 2>, 4> pipes{};
  int error = 0;
  std::size_t open = 0;
  while (open < pipes.size() && error == 0)
    if (::pipe(pipes[open].data()) == 0)
      ++open;
    else
      error = uv_translate_sys_error(errno);
  while (open > 0)
    for (const int end : pipes[--open]) ::close(end);
  check(error);
}

Instant read_monotonic_clock() { return {static_cast<std::int64_t>(uv_hrtime())}; }

}  // namespace

struct LoopState::Turn {
  explicit Turn(LoopState& state) : state_(state) {
    assert(!state.in_turn_);
    state.in_turn_ = true;
    state.read_clock();
  }
  ~Turn() { state_.in_turn_ = false; }
  LoopState& state_;
};

LoopState::LoopState() {
  check_free_descriptors();
  check(uv_loop_init(&loop_));
  loop_.data = this;
  const int error = uv_async_init(&loop_, &async_, [](uv_async_t* handle) {
    auto& self = *static_cast<LoopState*>(handle->loop->data);
    // take_posted() takes the mutex without looking at the flag: on a processor with weak memory ordering the flag may still look unset to
    // the thread that uv has woken.
    self.dispatch([&] { self.take_posted(); });
  });
  if (error != 0) uv_loop_close(&loop_);
  check(error);
  uv_timer_init(&loop_, &timer_);  // cannot fail
}

LoopState::~LoopState() {
  in_turn_ = true;
  const auto close_handle = [](uv_handle_t* handle, void*) {
    if (uv_is_closing(handle)) return;
    if (handle->type == UV_POLL)
      static_cast<SocketWatch*>(handle->data)->close_socket();
    else
      uv_close(handle, nullptr);
  };
  uv_walk(&loop_, close_handle, nullptr);
  uv_run(&loop_, UV_RUN_DEFAULT);
  [[maybe_unused]] const int error = uv_loop_close(&loop_);
  assert(error == 0);
}

void LoopState::read_clock() { now_ = read_monotonic_clock(); }

// Between turns `now_` is the time of the last turn, which may be long ago, so the clock is read.
Instant LoopState::now() const { return in_turn_ ? now_ : read_monotonic_clock(); }

TimerId LoopState::after(Duration delay, Task task) {
  const auto start = now().nanoseconds;
  const auto wait = std::clamp<std::int64_t>(delay.nanoseconds, 0, std::numeric_limits<std::int64_t>::max() - start);
  const auto id = ++last_timer_;
  timers_.emplace(TimerKey{start + wait, id}, std::move(task));
  deadlines_.emplace(id, start + wait);
  return id;
}

void LoopState::cancel(TimerId id) {
  const auto found = deadlines_.find(id);
  if (found == deadlines_.end()) return;
  timers_.erase({found->second, id});
  deadlines_.erase(found);
}

bool LoopState::run_due_timers() {
  // A timer that is set by a timer's task waits for the next turn, even if it has no delay.
  const auto last = last_timer_;
  bool any = false;
  for (auto next = timers_.begin(); next != timers_.end() && next->first.first <= now_.nanoseconds; next = timers_.begin()) {
    if (next->first.second > last) break;
    const auto node = timers_.extract(next);
    deadlines_.erase(node.key().second);
    node.mapped()();
    any = true;
  }
  return any;
}

void LoopState::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    has_posted_.store(true, std::memory_order_relaxed);
  }
  uv_async_send(&async_);
}

void LoopState::wake() { uv_async_send(&async_); }

bool LoopState::run_posted() {
  // Reading a stale `false` is harmless, because uv's wake-up follows each post and takes the tasks.
  if (!has_posted_.load(std::memory_order_relaxed)) return false;
  take_posted();
  return true;
}

void LoopState::take_posted() {
  {
    const std::lock_guard lock(mutex_);
    running_posted_.swap(posted_);
    has_posted_.store(false, std::memory_order_relaxed);
  }
  for (auto& task : running_posted_) task();
  running_posted_.clear();
}

bool LoopState::flush_round() {
  bool any = !deferred_.empty();
  running_.swap(deferred_);
  for (auto& task : running_) task();
  running_.clear();
  ListNode batch;
  batch.take_all_of(woken_);
  while (batch.linked()) {
    any = true;
    auto& watch = batch.first();
    watch.woken_node_.unlink();
    watch.flush_output();
  }
  return any;
}

bool LoopState::drain() {
  bool any = false;
  for (int round = 0; round < kFlushRounds && flush_round(); ++round) any = true;
  return any;
}

bool LoopState::flush() {
  if (in_turn_) return false;
  const Turn turn(*this);
  const bool any = run_posted();
  return drain() || any;
}

bool LoopState::receive_directly() {
  bool any = false;
  for (auto count = std::min(receiver_count_, kDirectReceivesPerTurn); count > 0 && receivers_.linked(); --count) {
    auto& watch = receivers_.first();
    watch.receiver_node_.move_to_end_of(receivers_);
    if (!watch.receive_directly()) continue;
    any = true;
    drain();
  }
  return any;
}

void LoopState::remove_source(PollSource& source) {
  const auto found = std::find(sources_.begin(), sources_.end(), &source);
  if (found == sources_.end()) return;
  *found = nullptr;
  source_removed_ = true;
  if (!polling_sources_) forget_removed_sources();
}

void LoopState::forget_removed_sources() {
  if (std::exchange(source_removed_, false)) std::erase(sources_, nullptr);
}

bool LoopState::poll_sources() {
  bool any = false;
  polling_sources_ = true;
  // Sources that are added meanwhile have their turn in the next round.
  for (std::size_t i = 0, count = sources_.size(); i < count; ++i) {
    if (sources_[i] == nullptr || !sources_[i]->poll()) continue;
    any = true;
    drain();
  }
  polling_sources_ = false;
  forget_removed_sources();
  return any;
}

bool LoopState::prepare_sources_to_block() {
  std::size_t prepared = 0;
  bool may_block = true;
  while (may_block && prepared < sources_.size()) may_block = sources_[prepared++]->prepare_to_block();
  if (!may_block) wake_sources(prepared);
  return may_block;
}

void LoopState::wake_sources(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sources_[i]->awake();
}

bool LoopState::run_uv(uv_run_mode mode) {
  turns_without_uv_ = 0;
  dispatched_ = false;
  uv_run(&loop_, mode);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return dispatched_;
}

void LoopState::keep_failure(std::exception_ptr failure) noexcept {
  if (!failure_) failure_ = std::move(failure);
  uv_stop(&loop_);
}

void LoopState::cut_off() noexcept {
  const auto close_socket = [](uv_handle_t* handle, void*) {
    if (handle->type == UV_POLL && !uv_is_closing(handle)) static_cast<SocketWatch*>(handle->data)->close_socket();
  };
  uv_walk(&loop_, close_socket, nullptr);
}

bool LoopState::poll() {
  const Turn turn(*this);
  bool any = run_due_timers();
  any |= run_posted();
  any |= drain();
  any |= receive_directly();
  any |= poll_sources();
  // While a writer is stalled or a dial is under way, the next event may be one that only uv reports.
  const bool only_uv_receives = receiver_count_ == 0 && sources_.empty();
  if (++turns_without_uv_ >= kTurnsPerUvTurn || only_uv_receives || waiting_writers_ > 0) any |= run_uv(UV_RUN_NOWAIT);
  return any;
}

void LoopState::wait() {
  const Turn turn(*this);
  bool any = run_due_timers();
  any |= run_posted();
  any |= drain();
  if (any) {
    run_uv(UV_RUN_NOWAIT);
    return;
  }
  if (!prepare_sources_to_block()) {
    poll_sources();
    run_uv(UV_RUN_NOWAIT);
    return;
  }
  arm_timer();
  run_uv(UV_RUN_ONCE);
  wake_sources(sources_.size());
  read_clock();
  if (run_due_timers()) drain();
}

void LoopState::arm_timer() {
  const auto deadline = timers_.empty() ? -1 : timers_.begin()->first.first;
  if (deadline == armed_for_ && uv_is_active(reinterpret_cast<uv_handle_t*>(&timer_))) return;
  armed_for_ = deadline;
  if (deadline < 0) {
    uv_timer_stop(&timer_);
    return;
  }
  uv_update_time(&loop_);
  const auto rest = std::max<std::int64_t>(deadline - now_.nanoseconds, 0);
  // Rounded up, because uv counts whole milliseconds, and a timer that runs too early would cause a useless turn.
  const auto milliseconds = static_cast<std::uint64_t>(rest / 1'000'000) + 1;
  // uv may run the timer before it blocks; uv_stop() makes that turn return instead of blocking while the task has not run.
  uv_timer_start(&timer_, [](uv_timer_t* handle) { uv_stop(handle->loop); }, milliseconds, 0);
}

}  // namespace ringlet::uv

namespace ringlet {

UvLoop::UvLoop() : state_(std::make_unique<uv::LoopState>()) {}
UvLoop::~UvLoop() {
  // Its objects may be in any state, so nothing of them runs any more.
  if (cut_off_) (void)state_.release();
}

Instant UvLoop::now() const { return state_->now(); }
void UvLoop::defer(Task task) { state_->defer(std::move(task)); }
TimerId UvLoop::after(Duration delay, Task task) { return state_->after(delay, std::move(task)); }
void UvLoop::cancel(TimerId id) { state_->cancel(id); }
void UvLoop::add_source(PollSource& source) { state_->add_source(source); }
void UvLoop::remove_source(PollSource& source) { state_->remove_source(source); }
void UvLoop::post(Task task) { state_->post(std::move(task)); }
void UvLoop::wake() { state_->wake(); }
bool UvLoop::poll() { return state_->poll(); }
void UvLoop::wait() { state_->wait(); }
uv_loop_s* UvLoop::uv() noexcept { return state_->uv(); }
bool UvLoop::flush() { return state_->flush(); }
void UvLoop::keep_failure(uv_loop_s* loop, std::exception_ptr failure) noexcept {
  static_cast<uv::LoopState*>(loop->data)->keep_failure(std::move(failure));
}
void UvLoop::cut_off() noexcept {
  cut_off_ = true;
  state_->cut_off();
}

}  // namespace ringlet
