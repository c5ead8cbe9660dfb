#include <ringlet/ringlet.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

using Catch::Matchers::Contains;

namespace {

template <class T>
T nothing_for(T value, bool nothing) {
  if constexpr (std::is_pointer_v<T>)
    return nothing ? nullptr : value;
  else
    return value;
}

/// Calls `function` once for each of `positions`, with NULL for that argument and the others as they are.
template <class... Parameters, class... Arguments>
void check_each_null(int32_t (*function)(Parameters...), const std::set<std::size_t>& positions, Arguments... arguments) {
  const std::tuple<Parameters...> values(arguments...);
  for (const std::size_t position : positions) {
    CAPTURE(position);
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
      CHECK(function(nothing_for(std::get<kIndex>(values), kIndex == position)...) == RINGLET_INVALID_ARGUMENT);
    }(std::index_sequence_for<Parameters...>());
    CHECK_THAT(ringlet_error_message(), Contains("NULL"));
  }
}

/// A group of one, and arguments for calls.
struct Alone {
  Alone() { REQUIRE(ringlet_group_of_one(&group) == RINGLET_OK); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() { ringlet_group_free(group); }

  ringlet_group* group = nullptr;
  std::array<float, 4> in{1, 2, 3, 4}, out{};
  int64_t count = 4;
  ringlet_tensor input{in.data(), RINGLET_F32, 1, &count, nullptr};
  ringlet_tensor output{out.data(), RINGLET_F32, 1, &count, nullptr};
  ringlet_named_tensor named{"weight", input};
  ringlet_work* work = nullptr;
};

}  // namespace

TEST_CASE("a collective refuses each argument that is NULL beside good ones") {
  Alone a;
  check_each_null(ringlet_all_reduce, {0, 2, 3}, a.group, RINGLET_SUM, &a.input, &a.output, nullptr);
  check_each_null(ringlet_all_reduce_async, {0, 2, 3, 5}, a.group, RINGLET_SUM, &a.input, &a.output, nullptr, &a.work);
  check_each_null(ringlet_all_mean, {0, 1, 2}, a.group, &a.input, &a.output, nullptr);
  check_each_null(ringlet_reduce_scatter_v, {0, 2, 3, 4}, a.group, RINGLET_SUM, &a.input, &a.output, &a.count, nullptr);
  check_each_null(ringlet_all_gather_v, {0, 1, 2, 3}, a.group, &a.input, &a.output, &a.count, nullptr);
  check_each_null(ringlet_reduce, {0, 2, 3}, a.group, RINGLET_SUM, &a.input, &a.output, 0, nullptr);
  check_each_null(ringlet_gather_v, {0, 1, 2, 3}, a.group, &a.input, &a.output, &a.count, 0, nullptr);
  check_each_null(ringlet_scatter_v, {0, 1, 2, 3}, a.group, &a.input, &a.output, &a.count, 0, nullptr);
  check_each_null(ringlet_all_to_all_v, {0, 1, 2, 3, 4}, a.group, &a.input, &a.output, &a.count, &a.count, nullptr);
  check_each_null(ringlet_broadcast, {0, 1}, a.group, &a.input, 0, nullptr);
  check_each_null(ringlet_send, {0, 1}, a.group, &a.input, 0, nullptr);
  CHECK(a.work == nullptr);
}

TEST_CASE("calls with trees refuse each argument that is NULL beside good ones") {
  Alone a;
  ringlet_optimizer* optimizer = nullptr;
  ringlet_fully_shard* sharded = nullptr;
  ringlet_unsharded* unsharded = nullptr;
  ringlet_bucketer* bucketer = nullptr;
  ringlet_outer_trainer* outer = nullptr;
  const ringlet_named_tensor* tensors = nullptr;
  std::size_t count = 0;
  REQUIRE(ringlet_adamw_create(0.1, nullptr, &optimizer) == RINGLET_OK);
  REQUIRE(ringlet_fully_shard_create(a.group, nullptr, &sharded) == RINGLET_OK);
  REQUIRE(ringlet_fully_shard_add(sharded, "module", &a.named, 1, nullptr) == RINGLET_OK);
  check_each_null(ringlet_average_gradients, {0, 1}, a.group, &a.named, 1u, nullptr);
  check_each_null(ringlet_bucketer_create, {0, 1, 5}, a.group, &a.named, 1u, nullptr, 1, &bucketer);
  check_each_null(ringlet_optimizer_apply_gradients, {0, 1, 3}, optimizer, &a.named, 1u, &a.named, 1u);
  check_each_null(ringlet_optimizer_state, {0, 1, 2}, optimizer, &tensors, &count);
  check_each_null(ringlet_fsdp_apply_gradients, {0, 1, 3, 5}, a.group, &a.named, 1u, &a.named, 1u, optimizer, nullptr, nullptr);
  check_each_null(ringlet_fully_shard_add, {0, 1, 2}, sharded, "other", &a.named, 1u, nullptr);
  check_each_null(ringlet_fully_shard_forward, {0, 2, 3, 4}, sharded, 0u, &unsharded, &tensors, &count);
  check_each_null(ringlet_fully_shard_gradients, {0, 1, 2}, sharded, &tensors, &count);
  check_each_null(ringlet_outer_trainer_create, {0, 1, 4}, a.group, &a.named, 1u, nullptr, &outer);
  REQUIRE(ringlet_outer_trainer_create(a.group, &a.named, 1, nullptr, &outer) == RINGLET_OK);
  check_each_null(ringlet_outer_trainer_shared_parameters, {0, 1, 2}, outer, &tensors, &count);
  check_each_null(ringlet_outer_trainer_fragment, {0, 2, 3}, outer, 0, &tensors, &count);
  ringlet_outer_trainer_free(outer);
  check_each_null(ringlet_shard_axis, {0, 1, 5}, a.group, &a.input, 0u, nullptr, 0u, &a.output);
  ringlet_fully_shard_free(sharded);
  ringlet_optimizer_free(optimizer);
}

TEST_CASE("a span refuses each argument that is NULL, and a kind that there is not, also where no trace is written") {
  ringlet_trace_span span = 7;
  check_each_null(ringlet_trace_span_begin, {0, 2}, "forward", RINGLET_SPAN_WORK, &span);
  CHECK(span == 0);
  span = 7;
  CHECK(ringlet_trace_span_begin("forward", 2, &span) == RINGLET_INVALID_ARGUMENT);
  CHECK_THAT(ringlet_error_message(), Contains("ringlet_trace_span_begin: kind is 2"));
  CHECK(span == 0);
  // The end of a span comes between a call that failed and the question why.
  ringlet_trace_span_end(span);
  CHECK_THAT(ringlet_error_message(), Contains("kind is 2"));
  CHECK(ringlet_trace_span_begin("forward", RINGLET_SPAN_WAIT, &span) == RINGLET_OK);
  CHECK(span == 0);
}

TEST_CASE("trees with bad names are refused with the name") {
  Alone a;
  const std::array<ringlet_named_tensor, 2> twice{a.named, a.named};
  CHECK(ringlet_average_gradients(a.group, twice.data(), 2, nullptr) == RINGLET_INVALID_ARGUMENT);
  CHECK_THAT(ringlet_error_message(), Contains("weight"));
  a.named.name = "";
  CHECK(ringlet_average_gradients(a.group, &a.named, 1, nullptr) == RINGLET_INVALID_ARGUMENT);
  a.named = {"weight", {nullptr, RINGLET_F32, 1, &a.count, nullptr}};
  CHECK(ringlet_average_gradients(a.group, &a.named, 1, nullptr) == RINGLET_INVALID_ARGUMENT);
  CHECK_THAT(ringlet_error_message(), Contains("'weight'.data is NULL"));
}

TEST_CASE("options of an older and of a newer header are understood") {
  // This is the struct of an older header, which had only the size and the first member.
  struct {
    std::size_t struct_size;
    int64_t timeout_ms;
    int32_t guard;
  } older{};
  older.guard = 77;
  constexpr std::size_t kOlderSize = offsetof(ringlet_call_options, stream);
  REQUIRE(ringlet_call_options_init(reinterpret_cast<ringlet_call_options*>(&older), kOlderSize) == RINGLET_OK);
  CHECK(older.struct_size == kOlderSize);
  CHECK(older.guard == 77);
  Alone a;
  older.guard = -5;  // where the stream would be
  CHECK(ringlet_barrier(a.group, reinterpret_cast<const ringlet_call_options*>(&older)) == RINGLET_OK);

  struct {
    ringlet_call_options options;
    int64_t newer;
  } newer{};
  REQUIRE(ringlet_call_options_init(&newer.options, sizeof newer) == RINGLET_OK);
  CHECK(ringlet_barrier(a.group, &newer.options) == RINGLET_OK);
  newer.newer = 1;
  CHECK(ringlet_barrier(a.group, &newer.options) == RINGLET_INVALID_ARGUMENT);
  CHECK_THAT(ringlet_error_message(), Contains("does not have"));
}

TEST_CASE("each thread has its own last error") {
  Alone a;
  REQUIRE(ringlet_broadcast(a.group, &a.input, 5, nullptr) == RINGLET_INVALID_ARGUMENT);
  const std::string here = ringlet_error_message();
  std::string there = "unset";
  std::thread([&] { there = ringlet_error_message(); }).join();
  CHECK(there.empty());
  CHECK(here == ringlet_error_message());
  ringlet_work_free(nullptr);
  CHECK(here == ringlet_error_message());
  REQUIRE(ringlet_barrier(a.group, nullptr) == RINGLET_OK);
  CHECK(std::strlen(ringlet_error_message()) == 0);
}
