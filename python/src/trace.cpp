#include "trace.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <ringlet/trace.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ringlet::python {
namespace {

/// What `with` enters: again and again, within itself, and by several threads. The interpreter's lock guards it.
class SpanHandle {
 public:
  SpanHandle(std::string name, bool wait) : name_(std::move(name)), kind_(wait ? SpanKind::wait : SpanKind::work) {}
  SpanHandle(const SpanHandle&) = delete;
  SpanHandle& operator=(const SpanHandle&) = delete;

  void enter() {
    if (TraceSpan::is_on()) entered_.push_back({std::this_thread::get_id(), std::make_unique<TraceSpan>(name_, kind_)});
  }
  void leave() {
    if (entered_.empty()) return;
    const auto own = std::find_if(entered_.rbegin(), entered_.rend(),
                                  [here = std::this_thread::get_id()](const Entered& entered) { return entered.thread == here; });
    // A generator may be closed by another thread than the one that it was in.
    entered_.erase(std::prev(own == entered_.rend() ? entered_.end() : own.base()));
  }

 private:
  struct Entered {
    std::thread::id thread;
    std::unique_ptr<TraceSpan> span;  // ends when it is destroyed
  };

  const std::string name_;
  const SpanKind kind_;
  std::vector<Entered> entered_;
};

}  // namespace

void bind_trace(nb::module_& module) {
  nb::class_<SpanHandle>(
      module, "TraceSpan",
      "A part of a program's work in the trace of its ranks (docs/trace.md), for `with`: from where it is entered to where\n"
      "it is left, on the line of the thread that does so.\n"
      "\n"
      "`name`: its first 39 bytes in UTF-8 are kept. `wait`: that time counts as waiting for others, which Ringlet's own\n"
      "calls record by themselves. May be kept and entered again, also within itself, and by any threads at the same time.\n"
      "Spans of one thread lie within or beside each other: enter none around an `await` during which other tasks enter\n"
      "theirs. Nothing is recorded where this process writes no trace, or none yet: init() begins it.")
      .def(nb::init<std::string, bool>(), nb::arg("name"), nb::kw_only(), nb::arg("wait") = false)
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
