#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <chrono>
#include <memory>
#include <optional>
#include <ringlet/group.hpp>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "callbacks.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "interruptible.hpp"
#include "works.hpp"

namespace ringlet::python {
namespace {

using Text = std::optional<std::string>;
using Switch = std::optional<bool>;
using Number = std::optional<int>;
using Seconds = std::optional<double>;

std::optional<OnSplit> on_split_named(const Text& name) {
  if (!name) return std::nullopt;
  if (*name == "wait") return OnSplit::wait;
  if (*name == "fork") return OnSplit::fork;
  refuse("on_split is '" + *name + "'; it may be wait or fork");
}

std::optional<ReduceOrder> order_named(const Text& name) {
  if (!name) return std::nullopt;
  if (*name == "any") return ReduceOrder::any;
  if (*name == "rank") return ReduceOrder::rank;
  refuse("order is '" + *name + "'; it may be any or rank");
}

std::optional<PartsPolicy> parts_named(const Text& name) {
  if (!name) return std::nullopt;
  if (*name == "even") return PartsPolicy::even;
  if (*name == "passive") return PartsPolicy::passive;
  if (*name == "measured") return PartsPolicy::measured;
  refuse("parts is '" + *name + "'; it may be even, passive or measured");
}

constexpr char kOnDelay[] = "the function on_delay of ringlet.init()";

/// Python's function for reports of delays, which is dropped on the thread that calls it.
class DelayFunction {
 public:
  explicit DelayFunction(nb::object function) : function_(function.release().ptr()) {
    // Starts the thread now, since a handler may not throw.
    call_later([] {}, kOnDelay);
  }
  DelayFunction(const DelayFunction&) = delete;
  DelayFunction& operator=(const DelayFunction&) = delete;
  ~DelayFunction() {
    call_later([function = function_] { Py_DECREF(function); }, kOnDelay);
  }

  /// The library's thread, which may wait for nobody: not for the interpreter's lock either.
  void tell(const Delay& delay) const {
    call_later([function = nb::handle(function_), delay] { function(parts_of(delay)); }, kOnDelay);
  }

 private:
  static nb::tuple parts_of(const Delay& delay) {
    nb::list late;
    for (const Latecomer& rank : delay.late) late.append(nb::make_tuple(rank.rank, rank.host, rank.answers, rank.doing));
    return nb::make_tuple(delay.rank, delay.operation, std::chrono::duration<double>(delay.waited).count(), delay.over, delay.speaks, late,
                          delay.text);
  }

  PyObject* const function_;
};

DelayHandler handler_of(nb::object function) {
  if (function.is_none()) return {};
  return [kept = std::make_shared<const DelayFunction>(std::move(function))](const Delay& delay) { kept->tell(delay); };
}

/// As init() itself has it, in milliseconds.
constexpr const char* kMostSeconds = "1e6";
constexpr SecondsRange kTimeout{.has_zero = false, .most = kMostSeconds};

GroupHandle init_group(bool strict, std::string backend, Number rank, Number world_size, Text coordinator, Number listen_fd, Text hostfile,
                       Text listen, Text advertise, Text interfaces, Number guests, Text token, Switch encrypt, Switch peer_memory,
                       Switch status, Text trace, Seconds connect_timeout, Seconds operation_timeout, Seconds warn_after, Switch elastic,
                       const Text& on_split, Text join, Text door, Seconds heartbeat_timeout, const Text& order, const Text& parts,
                       nb::object on_delay) {
  InitOptions options;
  options.strict = strict;
  options.backend = std::move(backend);
  options.rank = rank;
  options.world_size = world_size;
  options.coordinator = std::move(coordinator);
  options.listen_fd = listen_fd;
  options.hostfile = std::move(hostfile);
  options.listen = std::move(listen);
  options.advertise = std::move(advertise);
  options.interfaces = std::move(interfaces);
  options.guests = guests;
  options.token = std::move(token);
  options.encrypt = encrypt;
  options.peer_memory = peer_memory;
  options.status = status;
  options.trace = std::move(trace);
  options.connect_timeout = milliseconds_of(connect_timeout, "connect_timeout", kTimeout);
  options.operation_timeout = milliseconds_of(operation_timeout, "operation_timeout", kTimeout);
  options.warn_after = milliseconds_of(warn_after, "warn_after", {.most = kMostSeconds});
  options.elastic = elastic;
  options.on_split = on_split_named(on_split);
  options.join = std::move(join);
  options.door = std::move(door);
  options.heartbeat_timeout = milliseconds_of(heartbeat_timeout, "heartbeat_timeout", kTimeout);
  options.order = order_named(order);
  options.parts = parts_named(parts);
  options.on_delay = handler_of(std::move(on_delay));
  options.interrupted = &RaisedBySignals::look;
  return GroupHandle(interruptible([options = std::move(options)] { return init(options); }));
}

}  // namespace

void bind_init(nb::module_& module) {
  const auto unset = [](const char* name) { return nb::arg(name) = nb::none(); };
  define(module, "init", &init_group, nb::kw_only(), nb::arg("strict") = false, nb::arg("backend") = "any", unset("rank"),
         unset("world_size"), unset("coordinator"), unset("listen_fd"), unset("hostfile"), unset("listen"), unset("advertise"),
         unset("interfaces"), unset("guests"), unset("token"), unset("encrypt"), unset("peer_memory"), unset("status"), unset("trace"),
         unset("connect_timeout"), unset("operation_timeout"), unset("warn_after"), unset("elastic"), unset("on_split"), unset("join"),
         unset("door"), unset("heartbeat_timeout"), unset("order"), unset("parts"), unset("on_delay"), "Joins or forms a group.");
  define(module, "is_available", &is_available, nb::arg("backend") = "any", "Whether the named back end can be used here.");
}

}  // namespace ringlet::python
