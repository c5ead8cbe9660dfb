#include <ringlet/c/checkpoint.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

namespace {

template <class T, class Out>
int32_t get_value(const char* call, const ringlet_checkpoint* checkpoint, const char* name, Out* value) noexcept {
  return guarded(call, [&] {
    const T& found = value_of(checkpoint, "checkpoint").template get<T>(required(name, "name"));
    if constexpr (std::is_same_v<T, std::string>)
      *required(value, "value") = found.c_str();
    else
      *required(value, "value") = found;
  });
}

}  // namespace

int32_t ringlet_checkpoint_create(ringlet_checkpoint** checkpoint) {
  return guarded(__func__, [&] { give(checkpoint, "checkpoint", [] { return std::make_shared<ringlet::Checkpoint>(); }); });
}
void ringlet_checkpoint_free(ringlet_checkpoint* checkpoint) { delete checkpoint; }

int32_t ringlet_checkpoint_add(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* tensors, size_t count) {
  return guarded(__func__, [&] { value_of(checkpoint, "checkpoint").add(required(name, "name"), tree_of(tensors, count, "tensors")); });
}
int32_t ringlet_checkpoint_add_sharded(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* shards, size_t count,
                                       const ringlet_shard_layout* layout) {
  return guarded(__func__, [&] {
    value_of(checkpoint, "checkpoint").add_sharded(required(name, "name"), tree_of(shards, count, "shards"), value_of(layout, "layout"));
  });
}
int32_t ringlet_checkpoint_add_slots(ringlet_checkpoint* checkpoint, const char* name, const ringlet_named_tensor* slots, size_t count,
                                     const ringlet_shard_layout* layout) {
  return guarded(__func__, [&] {
    value_of(checkpoint, "checkpoint").add_slots(required(name, "name"), tree_of(slots, count, "slots"), value_of(layout, "layout"));
  });
}

int32_t ringlet_checkpoint_set_int(ringlet_checkpoint* checkpoint, const char* name, int64_t value) {
  return guarded(__func__, [&] { value_of(checkpoint, "checkpoint").set(required(name, "name"), value); });
}
int32_t ringlet_checkpoint_set_double(ringlet_checkpoint* checkpoint, const char* name, double value) {
  return guarded(__func__, [&] { value_of(checkpoint, "checkpoint").set(required(name, "name"), value); });
}
int32_t ringlet_checkpoint_set_text(ringlet_checkpoint* checkpoint, const char* name, const char* value) {
  return guarded(__func__, [&] { value_of(checkpoint, "checkpoint").set(required(name, "name"), std::string(required(value, "value"))); });
}
int32_t ringlet_checkpoint_get_int(const ringlet_checkpoint* checkpoint, const char* name, int64_t* value) {
  return get_value<std::int64_t>(__func__, checkpoint, name, value);
}
int32_t ringlet_checkpoint_get_double(const ringlet_checkpoint* checkpoint, const char* name, double* value) {
  return get_value<double>(__func__, checkpoint, name, value);
}
int32_t ringlet_checkpoint_get_text(const ringlet_checkpoint* checkpoint, const char* name, const char** value) {
  return get_value<std::string>(__func__, checkpoint, name, value);
}

int32_t ringlet_checkpoint_save(ringlet_checkpoint* checkpoint, ringlet_group* group, const char* directory, uint64_t step, int32_t keep,
                                const ringlet_call_options* options) {
  return guarded(__func__, [&] {
    const auto call = call_options(options);
    ringlet::save_checkpoint(value_of(group, "group"), required(directory, "directory"), value_of(checkpoint, "checkpoint"),
                             {.step = step, .keep = keep, .stream = call.stream, .timeout = call.timeout});
  });
}
int32_t ringlet_checkpoint_load(ringlet_checkpoint* checkpoint, ringlet_group* group, const char* directory, const uint64_t* step,
                                const ringlet_call_options* options, int32_t* found, uint64_t* loaded_step) {
  return guarded(__func__, [&] {
    const auto call = call_options(options);
    *required(found, "found") = 0;
    required(loaded_step, "loaded_step");
    const auto wanted = step != nullptr ? std::optional(*step) : std::nullopt;
    const auto loaded =
        ringlet::load_checkpoint(value_of(group, "group"), required(directory, "directory"), value_of(checkpoint, "checkpoint"),
                                 {.step = wanted, .stream = call.stream, .timeout = call.timeout});
    if (!loaded) return;
    *found = 1;
    *loaded_step = *loaded;
  });
}
