#include "works.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <list>
#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "errors.hpp"
#include "lock.hpp"

namespace ringlet::python {

namespace {

/// What a process has of its own, which is never destroyed, since the interpreter is gone before that: a forked process has none of the
/// threads that the other's operations and calls wait for.
struct Process;
Process* this_process = nullptr;

}  // namespace

struct Operation::State {
  Work work;
  std::vector<ArrayView> arrays;
  std::shared_ptr<int> source;
  std::timed_mutex waiting;  // for a Work waits one thread at a time
  std::mutex ending;         // of `work`'s end
  bool has_functions = false;
  std::atomic<bool> ended = false;
  Status status;
  const Process* const process = this_process;

  /// Whether it is another process' operation, and locks may be held for ever. What `work` is then asked for, it refuses.
  bool is_inherited() const { return process != this_process; }
  /// Waits without the interpreter's lock. Returns whether the operation has ended.
  bool wait(std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    if (ended) return true;
    if (is_inherited()) return work.wait_for(std::chrono::milliseconds{0});
    const std::unique_lock lock(waiting, timeout);
    if (!lock) return ended;
    if (ended) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    try {
      if (!work.wait_for(std::max(left, std::chrono::milliseconds{0}))) return false;
    } catch (const Error& error) {
      status = error.status();
    }
    const std::lock_guard end(ending);
    // The functions of on_done() are called in order, so those that `work` has go before it does.
    if (has_functions) work.on_done([](const Status&) {});
    work = Work();
    ended = true;
    return true;
  }
  void on_done(std::function<void(const Status&)> function) {
    if (!ended) {
      if (is_inherited()) return work.on_done(std::move(function));
      const std::lock_guard end(ending);
      has_functions = true;
      if (!ended) return work.on_done(std::move(function));
    }
    Work().on_done([function = std::move(function), outcome = status](const Status&) { function(outcome); });
  }
  /// Whether the operation has ended, without waiting for a thread that waits.
  bool is_over() {
    if (ended) return true;
    if (is_inherited()) return work.done();
    const std::unique_lock lock(waiting, std::try_to_lock);
    return lock && (ended || work.done());
  }
};

namespace {

using States = std::list<std::shared_ptr<Operation::State>>;

/// The calls of Python functions that the library's thread makes, as long as the interpreter lives.
class Callbacks {
 public:
  explicit Callbacks(bool stopped) : stopped_(stopped) {}

  void run(const std::function<void()>& task, const char* what) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;  // what the task would drop is left to the process' end
      ++running_;
    }
    with_lock([&] {
      try {
        task();
      } catch (nb::python_error& raised) {
        raised.discard_as_unraisable(what);
      }
    });
    if (!is_of_this_process()) return;  // the task has forked it
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  void stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.wait(lock, [this] { return running_ == 0; });
  }
  bool has_stopped() const { return stopped_; }

 private:
  bool is_of_this_process() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  bool stopped_;
};

struct Process {
  States running;  // the operations that run
  Callbacks callbacks;
};

bool Callbacks::is_of_this_process() const { return this == &this_process->callbacks; }

States& running() { return this_process->running; }
Callbacks& callbacks() { return this_process->callbacks; }

void begin_process() {
  // Where the interpreter ends, it does so in a forked process, too.
  const bool ends = this_process != nullptr && callbacks().has_stopped();
  this_process = new Process{{}, Callbacks(ends)};
  begin_threads();
}

constexpr char kWaiter[] = "a function that waited for the end of an operation of Ringlet's";

/// Looks at so many operations, others each time.
void forget_those_that_ended(std::size_t looks) {
  States over;
  States& all = running();
  for (looks = std::min(looks, all.size()); looks > 0; --looks) {
    States& to = all.front()->is_over() ? over : all;
    to.splice(to.end(), all, all.begin());
  }
  for (const auto& state : over) {
    {
      const WithoutLock unlocked;
      state->wait(std::chrono::milliseconds{0});
    }
    state->arrays.clear();
  }
}

}  // namespace

std::optional<std::chrono::milliseconds> milliseconds_of(std::optional<double> seconds, const char* name, SecondsRange range) {
  if (!seconds) return std::nullopt;
  if (!(*seconds >= 0 && *seconds <= std::strtod(range.most, nullptr)) || (*seconds == 0 && !range.has_zero))
    refuse(name + (" is " + shown(nb::float_(*seconds))) + (range.has_zero ? "; it is from 0 to " : "; it is more than 0 and at most ") +
           range.most + " s");
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000)));
}

CallOptions options_of(int stream, std::optional<double> timeout, bool waits_at_once) {
  if (stream < 0 || stream > UINT16_MAX) refuse("stream is " + std::to_string(stream) + "; streams are numbered from 0 to 1023");
  return {.stream = {static_cast<std::uint16_t>(stream)},
          .timeout = milliseconds_of(timeout, "timeout", {.has_zero = false}),
          .waits_at_once = waits_at_once};
}

Operation::Operation(Work work, std::vector<ArrayView> arrays, std::shared_ptr<int> source) : state_(std::make_shared<State>()) {
  state_->work = std::move(work);
  state_->arrays = std::move(arrays);
  state_->source = std::move(source);
  constexpr std::size_t kLooks = 8;
  forget_those_that_ended(kLooks);
  running().push_back(state_);
}

bool Operation::wait(std::optional<std::chrono::milliseconds> timeout) {
  const std::shared_ptr<State> state = state_;  // this handle may be dropped meanwhile
  const auto begin = std::chrono::steady_clock::now();
  for (bool ended = false; !ended;) {
    auto slice = kSlice;
    if (timeout) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(begin + *timeout - std::chrono::steady_clock::now());
      slice = std::clamp(left, std::chrono::milliseconds{0}, kSlice);
    }
    {
      const WithoutLock unlocked;
      ended = state->wait(slice);
    }
    if (ended) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (timeout && std::chrono::steady_clock::now() - begin >= *timeout) return false;
  }
  state->arrays.clear();
  throw_if_failed(state->status);
  return true;
}

bool Operation::done() const { return state_->is_over(); }

void Operation::on_done(nb::callable function) {
  // It is given up to Callbacks::run(), which has the interpreter's lock when it is dropped.
  PyObject* const given = function.release().ptr();
  const WithoutLock unlocked;
  state_->on_done([given](const Status& status) { callbacks().run([&] { nb::steal(given)(error_of(status)); }, kWaiter); });
}

int Operation::source() const { return state_->source && state_->is_over() ? *state_->source : -1; }

void stop_callbacks() {
  const WithoutLock unlocked;
  callbacks().stop();
}

void call_later(std::function<void()> task, const char* what) {
  Work().on_done([task = std::move(task), what](const Status&) { callbacks().run(task, what); });
}

void run_while_alive(const std::function<void()>& task, const char* what) { callbacks().run(task, what); }

void await_operations(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const States all = running();
  for (const auto& state : all) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const WithoutLock unlocked;
    state->wait(std::max(left, std::chrono::milliseconds{0}));
  }
  forget_those_that_ended(running().size());
}

void bind_works(nb::module_& module) {
  if (this_process == nullptr) begin_process();
  Class<Operation>(module, "Operation", "An operation that runs. It goes on if this object is dropped.")
      .def(
          "wait", [](Operation& operation, std::optional<double> timeout) { return operation.wait(milliseconds_of(timeout, "timeout")); },
          nb::arg("timeout") = nb::none(), "Whether the operation has ended within this many seconds.")
      .def("done", &Operation::done, "Whether the operation has ended.")
      .def(
          "on_done", [](Operation& operation, nb::callable function) { operation.on_done(std::move(function)); }, nb::arg("function"),
          "Calls the function with the operation's error, or None, when it has ended. Several functions are called in the order given.")
      .def_prop_ro("source", &Operation::source, "The rank that a receive from any rank has received from; -1 before.");
  define(module, "begin_process", &begin_process, "This process was forked, and forgets the other's threads and operations.");
  define(module, "begin_exit", &begin_exit, "The program ends by this thread: other threads that wait in a call stop there.");
  define(module, "stop_callbacks", &stop_callbacks, "Lets the call that on_done() asked for and that runs end; no other follows.");
  define(
      module, "await_operations", [](double timeout) { await_operations(*milliseconds_of(timeout, "timeout")); }, nb::arg("timeout"),
      "Waits for all operations that run, at most for so many seconds.");
}

}  // namespace ringlet::python
