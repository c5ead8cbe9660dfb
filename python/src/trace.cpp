#include "trace.hpp"
#include "arguments.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ringlet/trace.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::python {
namespace {

/// Numbers of pthread's may be given again when a thread has ended.
std::uint64_t number_of_this_thread() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number = ++threads;
  return number;
}

/// What `with` enters: again and again, within itself, and by several threads, of which each leaves what it has entered itself. The
/// interpreter's lock guards it.
class SpanHandle {
 public:
  static constexpr std::size_t kMaxDepth = 64;      // within itself, in one thread
  static constexpr std::size_t kMaxThreads = 1024;  // that are in it at the same time

  SpanHandle(std::string name, bool wait) : name_(std::move(name)), kind_(wait ? SpanKind::wait : SpanKind::work) {}
  ~SpanHandle() {
    // A generator that another thread has closed leaves spans of the thread that it was in.
    for (Entered& entered : entered_)
      for (const auto& span : entered.spans) span->drop();
  }
  SpanHandle(const SpanHandle&) = delete;
  SpanHandle& operator=(const SpanHandle&) = delete;

  void enter() {
    if (!TraceSpan::is_on()) return;
    auto own = find_own();
    if (own == entered_.end()) {
      if (entered_.size() == kMaxThreads) return;
      own = entered_.insert(entered_.end(), Entered{number_of_this_thread()});
    }
    if (own->depth++ < kMaxDepth) own->spans.push_back(std::make_unique<TraceSpan>(name_, kind_));
  }
  void leave() {
    const auto own = find_own();
    if (own == entered_.end()) return;
    if (--own->depth < kMaxDepth) own->spans.pop_back();
    if (own->depth == 0) entered_.erase(own);
  }

 private:
  struct Entered {
    std::uint64_t thread;
    std::size_t depth = 0;
    std::vector<std::unique_ptr<TraceSpan>> spans{};  // each ends when it is destroyed
  };

  std::vector<Entered>::iterator find_own() {
    return std::find_if(entered_.begin(), entered_.end(),
                        [here = number_of_this_thread()](const Entered& entered) { return entered.thread == here; });
  }

  const std::string name_;
  const SpanKind kind_;
  std::vector<Entered> entered_;
};

}  // namespace

void bind_trace(nb::module_& module) {
  Class<SpanHandle>(
      module, "TraceSpan",
      "A part of a program's work in the trace of its ranks (docs/trace.md), for `with`: from where it is entered to where\n"
      "it is left, on the line of the thread that does so.\n"
      "\n"
      "`name`: as many of its characters are kept as fit into 39 bytes of UTF-8. `wait`: that time counts as waiting for\n"
      "others, which Ringlet's own calls record by themselves. May be kept and entered again, also within itself (64 levels\n"
      "are recorded), and by any threads at the same time. What one thread has entered, another one does not leave: of a\n"
      "generator that another thread closes, nothing is recorded. Spans of one thread lie within or beside each other: enter\n"
      "none around an `await` during which other tasks enter theirs. Nothing is recorded where this process writes no trace,\n"
      "or none yet: init() begins it.")
      .def(
          "__init__", [](SpanHandle* span, std::string name, bool wait) { new (span) SpanHandle(std::move(name), wait); }, nb::arg("name"),
          nb::kw_only(), nb::arg("wait") = false, nb::sig("def __init__(self, name: str, *, wait: bool = False) -> None"))
      .def(
          "__enter__",
          [](SpanHandle& span) -> SpanHandle& {
            span.enter();
            return span;
          },
          nb::rv_policy::none)
      .def(
          "__exit__", [](SpanHandle& span, nb::handle, nb::handle, nb::handle) { span.leave(); }, nb::arg("kind").none(),
          nb::arg("error").none(), nb::arg("traceback").none());
}

}  // namespace ringlet::python
