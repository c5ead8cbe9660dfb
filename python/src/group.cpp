#include "group.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <ringlet/error.hpp>
#include <ringlet/tensor_parallel.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "errors.hpp"
#include "interruptible.hpp"
#include "lock.hpp"
#include "works.hpp"

namespace ringlet::python {
namespace {

using Counts = std::vector<std::int64_t>;
using Seconds = std::optional<double>;

/// The operation that the library has as functions of their own.
constexpr std::string_view kMean = "mean";

ReduceOp op_named(std::string_view name) {
  for (std::size_t number = 0; number < kReduceOpCount; ++number)
    if (name_of(static_cast<ReduceOp>(number)) == name) return static_cast<ReduceOp>(number);
  std::string known;
  for (std::size_t number = 0; number < kReduceOpCount; ++number) known += std::string(name_of(static_cast<ReduceOp>(number))) + ", ";
  refuse("'" + std::string(name) + "' is no operation; there are " + known + "and mean");
}

/// Waits for a caller that does so next, until it has to look for signals. It is told there if the operation has failed.
void begin_to_wait(Work& work) {
  try {
    static_cast<void>(work.wait_for(kSlice));
  } catch (const Error&) {
  }
}

/// Calls a function of the group without the interpreter's lock. Another thread may close the handle meanwhile, so the function has a copy;
/// the last one waits where it ends, which is before the lock is taken again.
template <class Function>
void without_lock(GroupHandle& handle, Function function) {
  std::optional<Group> copy = handle.get();
  const WithoutLock unlocked;
  std::optional<Group> group = std::exchange(copy, std::nullopt);
  function(*group);
}

/// Starts an operation on arrays, which are borrowed until it has ended.
template <class Start>
Operation start(GroupHandle& handle, std::vector<ArrayView> arrays, const CallOptions& options, Start function,
                std::shared_ptr<int> source = nullptr) {
  Work work;
  without_lock(handle, [&](Group& group) {
    work = function(group);
    if (options.waits_at_once) begin_to_wait(work);
  });
  return {std::move(work), std::move(arrays), std::move(source)};
}

/// The input and the output of a call. Where it has no use for one of them, that is None.
struct Buffers {
  Buffers(nb::handle input_array, nb::handle output_array) {
    if (!input_array.is_none()) input = arrays.emplace_back(input_array, Access::read).readable();
    if (!output_array.is_none()) output = arrays.emplace_back(output_array, Access::write).writable();
  }
  std::vector<ArrayView> arrays;
  ConstTensorView input;
  TensorView output;
};

Operation all_reduce(GroupHandle& handle, std::string_view op, nb::handle input, nb::handle output, int stream, Seconds timeout,
                     bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  if (op == kMean)
    return start(handle, buffers.arrays, options,
                 [&](Group& group) { return group.all_mean_async(buffers.input, buffers.output, options); });
  const ReduceOp operation = op_named(op);
  return start(handle, buffers.arrays, options,
               [&](Group& group) { return group.all_reduce_async(operation, buffers.input, buffers.output, options); });
}

Operation reduce_scatter(GroupHandle& handle, std::string_view op, nb::handle input, nb::handle output, const std::optional<Counts>& counts,
                         int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  if (op == kMean)
    return start(handle, buffers.arrays, options, [&](Group& group) {
      return counts ? group.mean_scatter_v_async(buffers.input, buffers.output, *counts, options)
                    : group.mean_scatter_async(buffers.input, buffers.output, options);
    });
  const ReduceOp operation = op_named(op);
  return start(handle, buffers.arrays, options, [&](Group& group) {
    return counts ? group.reduce_scatter_v_async(operation, buffers.input, buffers.output, *counts, options)
                  : group.reduce_scatter_async(operation, buffers.input, buffers.output, options);
  });
}

Operation all_gather(GroupHandle& handle, nb::handle input, nb::handle output, const std::optional<Counts>& counts, int stream,
                     Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  return start(handle, buffers.arrays, options, [&](Group& group) {
    return counts ? group.all_gather_v_async(buffers.input, buffers.output, *counts, options)
                  : group.all_gather_async(buffers.input, buffers.output, options);
  });
}

Operation reduce(GroupHandle& handle, std::string_view op, nb::handle input, nb::handle output, int root, int stream, Seconds timeout,
                 bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  if (op == kMean)
    return start(handle, buffers.arrays, options,
                 [&](Group& group) { return group.reduce_mean_async(buffers.input, buffers.output, root, options); });
  const ReduceOp operation = op_named(op);
  return start(handle, buffers.arrays, options,
               [&](Group& group) { return group.reduce_async(operation, buffers.input, buffers.output, root, options); });
}

Operation gather(GroupHandle& handle, nb::handle input, nb::handle output, int root, const std::optional<Counts>& counts, int stream,
                 Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  return start(handle, buffers.arrays, options, [&](Group& group) {
    return counts ? group.gather_v_async(buffers.input, buffers.output, *counts, root, options)
                  : group.gather_async(buffers.input, buffers.output, root, options);
  });
}

Operation scatter(GroupHandle& handle, nb::handle input, nb::handle output, int root, const std::optional<Counts>& counts, int stream,
                  Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  return start(handle, buffers.arrays, options, [&](Group& group) {
    return counts ? group.scatter_v_async(buffers.input, buffers.output, *counts, root, options)
                  : group.scatter_async(buffers.input, buffers.output, root, options);
  });
}

Operation all_to_all(GroupHandle& handle, nb::handle input, nb::handle output, const std::optional<std::pair<Counts, Counts>>& counts,
                     int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(input, output);
  return start(handle, buffers.arrays, options, [&](Group& group) {
    return counts ? group.all_to_all_v_async(buffers.input, buffers.output, counts->first, counts->second, options)
                  : group.all_to_all_async(buffers.input, buffers.output, options);
  });
}

Operation broadcast(GroupHandle& handle, nb::handle values, int root, int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(nb::none(), values);
  return start(handle, buffers.arrays, options, [&](Group& group) { return group.broadcast_async(buffers.output, root, options); });
}

Operation send(GroupHandle& handle, nb::handle values, int destination, int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(values, nb::none());
  return start(handle, buffers.arrays, options, [&](Group& group) { return group.send_async(buffers.input, destination, options); });
}

Operation recv(GroupHandle& handle, nb::handle values, int source, int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(nb::none(), values);
  return start(handle, buffers.arrays, options, [&](Group& group) { return group.recv_async(buffers.output, source, options); });
}

Operation recv_any(GroupHandle& handle, nb::handle values, int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  Buffers buffers(nb::none(), values);
  const auto source = std::make_shared<int>(-1);
  return start(
      handle, buffers.arrays, options, [&](Group& group) { return group.recv_any_async(buffers.output, *source, options); }, source);
}

Operation barrier(GroupHandle& handle, int stream, Seconds timeout, bool waits) {
  const CallOptions options = options_of(stream, timeout, waits);
  return start(handle, {}, options, [&](Group& group) { return group.barrier_async(options); });
}

std::optional<GroupHandle> split(GroupHandle& handle, int color, int key, int stream, Seconds timeout) {
  const CallOptions options = options_of(stream, timeout);
  std::optional<Group> part = interruptible([group = handle.get(), color, key, options] { return group.split(color, key, options); });
  return part ? std::optional<GroupHandle>(std::in_place, std::move(*part)) : std::nullopt;
}

GroupHandle create(GroupHandle& handle, const std::vector<int>& ranks, int tag, Seconds timeout) {
  return GroupHandle(
      interruptible([group = handle.get(), ranks, tag, options = options_of(0, timeout)] { return group.create(ranks, tag, options); }));
}

using Next = std::tuple<GroupHandle, std::vector<int>, std::vector<int>, std::uint64_t>;

Next next_of(Reformed reformed) {
  return {GroupHandle(std::move(reformed.world)), std::move(reformed.before), std::move(reformed.lost), reformed.lineage};
}

Next reform(GroupHandle& handle, Seconds timeout) {
  return next_of(interruptible([group = handle.get(), options = options_of(0, timeout)] { return group.reform(options); }));
}

std::optional<Next> admit(GroupHandle& handle, Seconds timeout) {
  std::optional<Reformed> next = interruptible([group = handle.get(), options = options_of(0, timeout)] { return group.admit(options); });
  return next ? std::optional<Next>(next_of(std::move(*next))) : std::nullopt;
}

GroupHandle rejoin(GroupHandle& handle) {
  return GroupHandle(interruptible([group = handle.get()] { return group.rejoin(); }));
}

bool agree(GroupHandle& handle, bool mine, Seconds timeout) {
  return interruptible([group = handle.get(), mine, options = options_of(0, timeout)] { return group.agree(mine, options); });
}

nb::list link_info(GroupHandle& handle) {
  nb::list links;
  for (const LinkInfo& link : handle.get().link_info()) {
    nb::dict entry;
    entry["peer"] = link.peer;
    entry["medium"] = link.medium;
    entry["cipher"] = link.cipher;
    entry["own_address"] = link.own_address;
    entry["peer_address"] = link.peer_address;
    entry["own_interface"] = link.own_interface;
    entry["peer_interface"] = link.peer_interface;
    entry["kind"] = link.kind;
    entry["tried"] = link.tried;
    entry["round_trip"] = std::chrono::duration<double>(link.round_trip).count();
    entry["bytes_per_second"] = link.bytes_per_second;
    links.append(entry);
  }
  return links;
}

}  // namespace

Group& GroupHandle::get() {
  if (!group_) refuse("the group is closed");
  return *group_;
}

GroupHandle::~GroupHandle() {
  if (!group_) return;
  const WithoutLock unlocked;
  group_.reset();
}

void GroupHandle::close() {
  if (!group_) return;
  interruptible([group = std::exchange(group_, std::nullopt)]() mutable {
    group.reset();
    return true;
  });
}

void bind_group(nb::module_& module) {
  using nb::arg;
  const auto stream = [] { return arg("stream") = 0; };
  const auto timeout = [] { return arg("timeout") = nb::none(); };
  const auto waits = [] { return arg("waits") = false; };
  const auto counts = [] { return arg("counts") = nb::none(); };
  nb::list operations;
  for (std::size_t number = 0; number < kReduceOpCount; ++number) operations.append(name_of(static_cast<ReduceOp>(number)));
  module.attr("reduce_ops") = operations;
  Class<GroupHandle>(module, "Group", "A group of ranks. Its calls start operations on arrays that the caller gives.")
      .def("__init__", [](GroupHandle* handle) { new (handle) GroupHandle(Group()); })
      .def("is_open", &GroupHandle::is_open)
      .def("rank", [](GroupHandle& handle) { return handle.get().rank(); })
      .def("size", [](GroupHandle& handle) { return handle.get().size(); })
      .def("guests", [](GroupHandle& handle) { return handle.get().guests(); })
      .def("all_reduce", &all_reduce, arg("op"), arg("input").none(), arg("output").none(), stream(), timeout(), waits())
      .def("reduce_scatter", &reduce_scatter, arg("op"), arg("input"), arg("output"), counts(), stream(), timeout(), waits())
      .def("all_gather", &all_gather, arg("input"), arg("output"), counts(), stream(), timeout(), waits())
      .def("reduce", &reduce, arg("op"), arg("input"), arg("output").none(), arg("root"), stream(), timeout(), waits())
      .def("gather", &gather, arg("input"), arg("output").none(), arg("root"), counts(), stream(), timeout(), waits())
      .def("scatter", &scatter, arg("input").none(), arg("output"), arg("root"), counts(), stream(), timeout(), waits())
      .def("all_to_all", &all_to_all, arg("input"), arg("output"), counts(), stream(), timeout(), waits())
      .def("broadcast", &broadcast, arg("values"), arg("root"), stream(), timeout(), waits())
      .def("send", &send, arg("values"), arg("destination"), stream(), timeout(), waits())
      .def("recv", &recv, arg("values"), arg("source"), stream(), timeout(), waits())
      .def("recv_any", &recv_any, arg("values"), stream(), timeout(), waits())
      .def("barrier", &barrier, stream(), timeout(), waits())
      .def("split", &split, arg("color"), arg("key") = -1, stream(), timeout())
      .def("create", &create, arg("ranks"), arg("tag") = 0, timeout())
      .def(
          "algorithm",
          [](GroupHandle& handle, std::string_view operation, std::size_t bytes) { return handle.get().algorithm(operation, bytes); },
          arg("operation"), arg("bytes"))
      .def("describe_placement", [](GroupHandle& handle) { return handle.get().describe_placement(); })
      .def("links", [](GroupHandle& handle) { return handle.get().links(); })
      .def("link_info", &link_info)
      .def("elastic", [](GroupHandle& handle) { return handle.get().elastic(); })
      .def("epoch", [](GroupHandle& handle) { return handle.get().epoch(); })
      .def("door", [](GroupHandle& handle) { return handle.get().door(); })
      .def("reform", &reform, timeout())
      .def("admit", &admit, timeout())
      .def("rejoin", &rejoin)
      .def("agree", &agree, arg("mine"), timeout())
      .def("revoke", [](GroupHandle& handle) { without_lock(handle, [](Group& group) { group.revoke(); }); })
      .def("leave", [](GroupHandle& handle) { without_lock(handle, [](Group& group) { group.leave(); }); })
      .def("share", &share_of)
      .def("close", &GroupHandle::close);
  define(
      module, "shard_axis",
      [](GroupHandle& handle, const ArrayView& full, std::size_t axis, const Counts& segments) {
        return exported(shard_axis(handle.get(), full.readable(), axis, segments));
      },
      arg("group"), arg("full"), arg("axis"), arg("segments"), "This rank's part of a sharded layer's weight, packed.");
}

}  // namespace ringlet::python
