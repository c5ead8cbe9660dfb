#include <ringlet/ringlet.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace {

template <class... Arguments>
std::function<int32_t()> with_zeros(int32_t (*function)(Arguments...)) {
  return [function] { return function(Arguments{}...); };
}

template <class Handle>
std::function<int32_t()> freeing(void (*handle_free)(Handle*)) {
  return [handle_free] {
    handle_free(nullptr);
    return RINGLET_OK;
  };
}

struct Function {
  std::function<int32_t()> call;  // called with NULL and 0 for all arguments
  int32_t code = RINGLET_INVALID_ARGUMENT;
};

#define FUNCTION(name)          \
  {                             \
    #name, { with_zeros(name) } \
  }
#define FREE(name)                       \
  {                                      \
    #name, { freeing(name), RINGLET_OK } \
  }
#define FUNCTION_AND_ASYNC(name) FUNCTION(name), FUNCTION(name##_async)

const std::map<std::string, Function> kFunctions{
    {"ringlet_version", {[] { return ringlet_version() == nullptr ? 1 : 0; }, RINGLET_OK}},
    {"ringlet_leave_all", {[] { return ringlet_leave_all(), RINGLET_OK; }, RINGLET_OK}},
    {"ringlet_error_message", {[] { return ringlet_error_message() == nullptr ? 1 : 0; }, RINGLET_OK}},
    {"ringlet_error_rank", {[] { return ringlet_error_rank(); }, -1}},
    {"ringlet_code_name", {[] { return ringlet_code_name(0) == nullptr ? 1 : 0; }, RINGLET_OK}},
    {"ringlet_is_available", {[] { return ringlet_is_available(nullptr) == 1 ? 0 : 1; }, RINGLET_OK}},
    {"ringlet_trace_span_end", {[] { return ringlet_trace_span_end(0), RINGLET_OK; }, RINGLET_OK}},
    FUNCTION(ringlet_trace_span_begin),
    FUNCTION(ringlet_call_options_init),
    FUNCTION(ringlet_init_options_init),
    FUNCTION(ringlet_init),
    FUNCTION(ringlet_group_of_one),
    FUNCTION(ringlet_group_copy),
    FREE(ringlet_group_free),
    FUNCTION(ringlet_group_rank),
    FUNCTION(ringlet_group_size),
    FUNCTION(ringlet_group_split),
    FUNCTION(ringlet_group_create),
    FUNCTION(ringlet_group_epoch),
    FUNCTION(ringlet_group_reform),
    FUNCTION(ringlet_group_agree),
    FUNCTION(ringlet_group_revoke),
    FUNCTION(ringlet_group_leave),
    FUNCTION(ringlet_group_door),
    FUNCTION(ringlet_group_admit),
    FUNCTION(ringlet_group_rejoin),
    FUNCTION(ringlet_group_algorithm),
    FUNCTION(ringlet_work_wait),
    FUNCTION(ringlet_work_wait_for),
    FUNCTION(ringlet_work_done),
    FUNCTION(ringlet_work_on_done),
    FREE(ringlet_work_free),
#include "table_functions.inc"
    FUNCTION_AND_ASYNC(ringlet_send),
    FUNCTION_AND_ASYNC(ringlet_recv),
    FUNCTION_AND_ASYNC(ringlet_recv_any),
    FUNCTION(ringlet_average_options_init),
    FUNCTION(ringlet_fsdp_options_init),
    FUNCTION(ringlet_fully_shard_options_init),
    FUNCTION(ringlet_average_gradients),
    FUNCTION(ringlet_averager_create),
    FUNCTION(ringlet_averager_add),
    FUNCTION(ringlet_averager_finish),
    FUNCTION(ringlet_averager_set_weight),
    FUNCTION(ringlet_bucketer_create),
    FUNCTION(ringlet_bucketer_ready),
    FUNCTION(ringlet_bucketer_ready_name),
    FUNCTION(ringlet_bucketer_finish),
    FUNCTION(ringlet_bucketer_averaged),
    FUNCTION(ringlet_bucketer_set_weight),
    FUNCTION(ringlet_optimizer_apply_gradients),
    FUNCTION(ringlet_optimizer_init),
    FUNCTION(ringlet_optimizer_state),
    FUNCTION(ringlet_optimizer_step),
    FUNCTION(ringlet_optimizer_set_step),
    FUNCTION(ringlet_optimizer_learning_rate),
    FUNCTION(ringlet_optimizer_set_learning_rate),
    FUNCTION(ringlet_fsdp_apply_gradients),
    FUNCTION(ringlet_fsdp_apply_gradients_with),
    FUNCTION(ringlet_fsdp_updater_create),
    FUNCTION(ringlet_fsdp_updater_apply_gradients),
    FUNCTION(ringlet_fsdp_updater_apply_gradients_with),
    FUNCTION(ringlet_fsdp_updater_layout),
    FUNCTION(ringlet_shard_layout_create),
    FUNCTION(ringlet_shard_layout_rows),
    FUNCTION(ringlet_clip_grad_norm_sharded),
    FUNCTION(ringlet_shard_axis),
    FUNCTION(ringlet_fully_shard_create),
    FUNCTION(ringlet_fully_shard_add),
    FUNCTION(ringlet_fully_shard_forward),
    FUNCTION(ringlet_fully_shard_backward),
    FUNCTION(ringlet_fully_shard_reduce_gradients),
    FUNCTION(ringlet_fully_shard_finish),
    FUNCTION(ringlet_fully_shard_parameters),
    FUNCTION(ringlet_fully_shard_gradients),
    FUNCTION(ringlet_fully_shard_layout),
    FUNCTION(ringlet_checkpoint_create),
    FUNCTION(ringlet_checkpoint_add),
    FUNCTION(ringlet_checkpoint_add_sharded),
    FUNCTION(ringlet_checkpoint_add_slots),
    FUNCTION(ringlet_checkpoint_set_int),
    FUNCTION(ringlet_checkpoint_set_double),
    FUNCTION(ringlet_checkpoint_set_text),
    FUNCTION(ringlet_checkpoint_get_int),
    FUNCTION(ringlet_checkpoint_get_double),
    FUNCTION(ringlet_checkpoint_get_text),
    FUNCTION(ringlet_checkpoint_save),
    FUNCTION(ringlet_checkpoint_load),
    FUNCTION(ringlet_elastic_options_init),
    FUNCTION(ringlet_elastic_trainer_create),
    FUNCTION(ringlet_elastic_trainer_run),
    FUNCTION(ringlet_elastic_trainer_step),
    FUNCTION(ringlet_elastic_trainer_group),
    FUNCTION(ringlet_elastic_trainer_state),
    FUNCTION(ringlet_outer_options_init),
    FUNCTION(ringlet_outer_trainer_create),
    FUNCTION(ringlet_outer_trainer_run),
    FUNCTION(ringlet_outer_trainer_shared_parameters),
    FUNCTION(ringlet_outer_trainer_fragment),
    FUNCTION(ringlet_outer_trainer_averages),
    FUNCTION(ringlet_outer_trainer_steps),
    FUNCTION(ringlet_outer_trainer_group),
    FUNCTION(ringlet_outer_trainer_state),
    FUNCTION(ringlet_step_samples),
    FUNCTION(ringlet_step_group),
    FUNCTION(ringlet_step_add),
    FUNCTION(ringlet_step_average),
    FUNCTION(ringlet_step_average_gradients),
    FUNCTION(ringlet_step_commit),
    FREE(ringlet_averager_free),
    FREE(ringlet_bucketer_free),
    FREE(ringlet_optimizer_free),
    FREE(ringlet_fsdp_updater_free),
    FREE(ringlet_shard_layout_free),
    FREE(ringlet_fully_shard_free),
    FREE(ringlet_unsharded_release),
    FREE(ringlet_checkpoint_free),
    FREE(ringlet_elastic_trainer_free),
    FREE(ringlet_outer_trainer_free),
    // An empty list of gradients is no mistake.
    {"ringlet_clip_grad_norm", {with_zeros(ringlet_clip_grad_norm), RINGLET_OK}},
};

/// Returns the names of the symbols that the library exports.
std::set<std::string> exported_symbols() {
  const std::unique_ptr<FILE, int (*)(FILE*)> nm(::popen(RINGLET_LIST_EXPORTS, "r"), ::pclose);
  REQUIRE(nm);
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), nm.get())) text.append(part.data(), bytes);
  std::set<std::string> names;
  std::istringstream lines(text);
#ifdef __APPLE__
  constexpr std::size_t kFirst = 1;  // Mach-O puts an underscore before every C name
#else
  constexpr std::size_t kFirst = 0;
#endif
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(kFirst, line.find(' ') - kFirst));
  return names;
}

}  // namespace

TEST_CASE("every C function survives NULL for all its arguments") {
  for (const auto& [name, function] : kFunctions) {
    CAPTURE(name, ringlet_error_message());
    CHECK(function.call() == function.code);
    if (function.code == RINGLET_INVALID_ARGUMENT) CHECK_THAT(ringlet_error_message(), Catch::Matchers::StartsWith(name + ": "));
  }
}

TEST_CASE("a vote without a place for its result is refused before anything else of it is looked at") {
  ringlet_group* group = nullptr;
  ringlet_call_options options;
  REQUIRE(ringlet_group_of_one(&group) == RINGLET_OK);
  REQUIRE(ringlet_call_options_init(&options, sizeof options) == RINGLET_OK);
  options.timeout_ms = -1;
  CHECK(ringlet_group_agree(group, 1, &options, nullptr) == RINGLET_INVALID_ARGUMENT);
  CHECK(std::string(ringlet_error_message()) == "ringlet_group_agree: agreed is NULL");
  ringlet_group_free(group);
}

TEST_CASE("the library exports the C API and nothing else") {
  std::set<std::string> listed;
  for (const auto& entry : kFunctions) listed.insert(entry.first);
  CHECK(exported_symbols() == listed);
}
