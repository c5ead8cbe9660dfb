#include <ringlet/c/group.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

namespace {

constexpr ringlet_call_options kCallDefaults{.struct_size = sizeof(ringlet_call_options), .timeout_ms = 0, .stream = 0};
constexpr ringlet_init_options kInitDefaults{.struct_size = sizeof(ringlet_init_options),
                                             .strict = 0,
                                             .rank = -1,
                                             .world_size = -1,
                                             .backend = nullptr,
                                             .coordinator = nullptr,
                                             .hostfile = nullptr,
                                             .connect_timeout_ms = 0,
                                             .operation_timeout_ms = 0,
                                             .heartbeat_timeout_ms = 0,
                                             .elastic = -1,
                                             .join = nullptr,
                                             .door = nullptr,
                                             .token = nullptr,
                                             .listen = nullptr,
                                             .advertise = nullptr,
                                             .interfaces = nullptr,
                                             .encrypt = -1,
                                             .guests = -1,
                                             .listen_fd = -1,
                                             .interrupted = nullptr,
                                             .interrupted_context = nullptr,
                                             .order = -1,
                                             .trace = nullptr,
                                             .parts = -1};

ringlet::ReduceOrder reduce_order(int32_t order) {
  if (order == RINGLET_ORDER_ANY) return ringlet::ReduceOrder::any;
  if (order == RINGLET_ORDER_RANK) return ringlet::ReduceOrder::rank;
  throw BadArgument("order is " + std::to_string(order) + "; it may be RINGLET_ORDER_ANY or RINGLET_ORDER_RANK");
}

ringlet::PartsPolicy parts_policy(int32_t parts) {
  if (parts == RINGLET_PARTS_EVEN) return ringlet::PartsPolicy::even;
  if (parts == RINGLET_PARTS_MEASURED) return ringlet::PartsPolicy::measured;
  if (parts == RINGLET_PARTS_PASSIVE) return ringlet::PartsPolicy::passive;
  throw BadArgument("parts is " + std::to_string(parts) +
                    "; it may be RINGLET_PARTS_EVEN, RINGLET_PARTS_PASSIVE or RINGLET_PARTS_MEASURED");
}

ringlet::InitOptions init_options_of(const ringlet_init_options& given) {
  ringlet::InitOptions options;
  options.strict = given.strict != 0;
  if (given.backend != nullptr) options.backend = given.backend;
  if (given.rank != -1) options.rank = given.rank;
  if (given.world_size != -1) options.world_size = given.world_size;
  if (given.coordinator != nullptr) options.coordinator = given.coordinator;
  if (given.hostfile != nullptr) options.hostfile = given.hostfile;
  options.connect_timeout = optional_milliseconds(given.connect_timeout_ms, "connect_timeout_ms");
  options.operation_timeout = optional_milliseconds(given.operation_timeout_ms, "operation_timeout_ms");
  options.heartbeat_timeout = optional_milliseconds(given.heartbeat_timeout_ms, "heartbeat_timeout_ms");
  if (given.elastic != -1) options.elastic = given.elastic != 0;
  if (given.join != nullptr) options.join = given.join;
  if (given.door != nullptr) options.door = given.door;
  if (given.token != nullptr) options.token = given.token;
  if (given.listen != nullptr) options.listen = given.listen;
  if (given.advertise != nullptr) options.advertise = given.advertise;
  if (given.interfaces != nullptr) options.interfaces = given.interfaces;
  if (given.encrypt != -1) options.encrypt = given.encrypt != 0;
  if (given.guests != -1) options.guests = given.guests;
  if (given.listen_fd != -1) options.listen_fd = given.listen_fd;
  if (given.order != -1) options.order = reduce_order(given.order);
  if (given.trace != nullptr) options.trace = given.trace;
  if (given.parts != -1) options.parts = parts_policy(given.parts);
  if (given.interrupted != nullptr)
    options.interrupted = [ask = given.interrupted, context = given.interrupted_context] { return ask(context) != 0; };
  return options;
}

void write_ranks(const ringlet::Reformed& reformed, int32_t* ranks_before, size_t capacity) {
  if (ranks_before != nullptr) std::copy_n(reformed.before.begin(), std::min(capacity, reformed.before.size()), ranks_before);
}

}  // namespace

int32_t ringlet_call_options_init(ringlet_call_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, kCallDefaults);
}
int32_t ringlet_init_options_init(ringlet_init_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, kInitDefaults);
}

int32_t ringlet_is_available(const char* backend) { return ringlet::is_available(backend == nullptr ? "any" : backend) ? 1 : 0; }

int32_t ringlet_init(const ringlet_init_options* options, ringlet_group** group) {
  return guarded(__func__,
                 [&] { give(group, "group", [&] { return ringlet::init(init_options_of(options_or(options, kInitDefaults))); }); });
}

int32_t ringlet_group_of_one(ringlet_group** group) {
  return guarded(__func__, [&] { give(group, "group", [] { return ringlet::Group(); }); });
}

int32_t ringlet_group_copy(const ringlet_group* group, ringlet_group** copy) {
  return guarded(__func__, [&] { give(copy, "copy", [&] { return value_of(group, "group"); }); });
}

void ringlet_group_free(ringlet_group* group) { delete group; }

int32_t ringlet_group_rank(const ringlet_group* group, int32_t* rank) {
  return guarded(__func__, [&] { *required(rank, "rank") = value_of(group, "group").rank(); });
}

int32_t ringlet_group_size(const ringlet_group* group, int32_t* size) {
  return guarded(__func__, [&] { *required(size, "size") = value_of(group, "group").size(); });
}

int32_t ringlet_group_split(ringlet_group* group, int32_t color, int32_t key, const ringlet_call_options* options, ringlet_group** part) {
  return guarded(__func__, [&] {
    *required(part, "part") = nullptr;
    auto split = value_of(group, "group").split(color, key, call_options(options));
    if (split) give(part, "part", [&] { return std::move(*split); });
  });
}

int32_t ringlet_group_create(ringlet_group* group, const int32_t* ranks, size_t count, int32_t tag, const ringlet_call_options* options,
                             ringlet_group** part) {
  return guarded(__func__, [&] {
    give(part, "part", [&] { return value_of(group, "group").create(array_of(ranks, count, "ranks"), tag, call_options(options)); });
  });
}

int32_t ringlet_group_epoch(const ringlet_group* group, uint32_t* epoch) {
  return guarded(__func__, [&] { *required(epoch, "epoch") = value_of(group, "group").epoch(); });
}

int32_t ringlet_group_reform(const ringlet_group* group, const ringlet_call_options* options, ringlet_group** next, int32_t* ranks_before,
                             size_t capacity) {
  return guarded(__func__, [&] {
    give(next, "next", [&] {
      ringlet::Reformed reformed = value_of(group, "group").reform(call_options(options));
      write_ranks(reformed, ranks_before, capacity);
      return std::move(reformed.world);
    });
  });
}

int32_t ringlet_group_agree(const ringlet_group* group, int32_t mine, const ringlet_call_options* options, int32_t* agreed) {
  return guarded(__func__, [&] {
    // Votes only where there is a place for the result.
    int32_t& result = *required(agreed, "agreed");
    result = value_of(group, "group").agree(mine != 0, call_options(options)) ? 1 : 0;
  });
}

int32_t ringlet_group_revoke(const ringlet_group* group) {
  return guarded(__func__, [&] { value_of(group, "group").revoke(); });
}

int32_t ringlet_group_leave(const ringlet_group* group) {
  return guarded(__func__, [&] { value_of(group, "group").leave(); });
}

int32_t ringlet_group_door(const ringlet_group* group, char* door, size_t capacity) {
  return guarded(__func__, [&] {
    const std::string text = value_of(group, "group").door();
    if (text.size() >= capacity)
      throw BadArgument("capacity is " + std::to_string(capacity) + "; the door's address and its end need " +
                        std::to_string(text.size() + 1));
    std::copy_n(text.c_str(), text.size() + 1, required(door, "door"));
  });
}

int32_t ringlet_group_admit(const ringlet_group* group, const ringlet_call_options* options, ringlet_group** next, int32_t* ranks_before,
                            size_t capacity) {
  return guarded(__func__, [&] {
    *required(next, "next") = nullptr;
    auto admitted = value_of(group, "group").admit(call_options(options));
    if (!admitted) return;
    write_ranks(*admitted, ranks_before, capacity);
    give(next, "next", [&] { return std::move(admitted->world); });
  });
}

int32_t ringlet_group_rejoin(const ringlet_group* group, ringlet_group** next) {
  return guarded(__func__, [&] { give(next, "next", [&] { return value_of(group, "group").rejoin(); }); });
}

int32_t ringlet_group_algorithm(const ringlet_group* group, const char* operation, size_t bytes, const char** algorithm) {
  return guarded(__func__, [&] {
    // The C++ library's names are literals, so they end with a zero byte.
    *required(algorithm, "algorithm") = value_of(group, "group").algorithm(required(operation, "operation"), bytes).data();
  });
}

void ringlet_leave_all(void) { ringlet::leave_all(); }

int32_t ringlet_work_wait(ringlet_work* work) {
  return guarded(__func__, [&] { value_of(work, "work").wait(); });
}

int32_t ringlet_work_wait_for(ringlet_work* work, int64_t timeout_ms, int32_t* done) {
  return guarded(__func__, [&] {
    *required(done, "done") = 0;
    ringlet::Work& waited = value_of(work, "work");
    try {
      *done = waited.wait_for(milliseconds(timeout_ms, "timeout_ms")) ? 1 : 0;
    } catch (const ringlet::Error&) {
      *done = 1;
      throw;
    }
  });
}

int32_t ringlet_work_done(const ringlet_work* work, int32_t* done) {
  return guarded(__func__, [&] { *required(done, "done") = value_of(work, "work").done() ? 1 : 0; });
}

int32_t ringlet_work_on_done(ringlet_work* work, ringlet_done_function function, void* context) {
  return guarded(__func__, [&] {
    required(function, "function");
    value_of(work, "work").on_done([function, context](const ringlet::Status& status) {
      function(context, guarded("ringlet_work_on_done", [&] { throw_if_failed(status); }));
    });
  });
}

void ringlet_work_free(ringlet_work* work) { delete work; }
