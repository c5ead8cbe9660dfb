#include <ringlet/c/gradients.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

struct ringlet_averager {
  ringlet::GradientAverager value;
};

struct ringlet_bucketer {
  ringlet::GradientBucketer value;
  ExportedTree averaged{};
};

namespace {

ringlet_average_options defaults_from(const ringlet::AverageOptions& options) {
  return {.struct_size = sizeof(ringlet_average_options),
          .all_reduce_size = options.all_reduce_size,
          .first_bucket_size = options.first_bucket_size.value_or(-1),
          .communication_type = RINGLET_NO_DTYPE,
          .stream = 0,
          .weight = nullptr,
          .feedback = ringlet::BlockOptions().feedback,
          .least_elements = static_cast<int64_t>(ringlet::BlockOptions().least_elements)};
}

static_assert(RINGLET_WIRE_INT8 == ringlet::kFirstBlockFormat);
static_assert(RINGLET_WIRE_INT4 - RINGLET_WIRE_INT8 == static_cast<int>(ringlet::BlockFormat::int4) && ringlet::kBlockFormatCount == 2);

std::optional<double> optional_weight(const double* weight) { return weight ? std::optional(*weight) : std::nullopt; }

}  // namespace

std::optional<ringlet::Wire> ringlet::c::optional_wire(int32_t wire, const char* name, int32_t feedback, int64_t least_elements) {
  if (wire != RINGLET_WIRE_INT8 && wire != RINGLET_WIRE_INT4) return optional_dtype(wire, name);
  if (least_elements < 0) throw BadArgument("least_elements is " + std::to_string(least_elements) + "; give a number of elements from 0");
  return ringlet::Wire::in_blocks(static_cast<ringlet::BlockFormat>(wire - RINGLET_WIRE_INT8),
                                  {.feedback = feedback != 0, .least_elements = static_cast<std::size_t>(least_elements)});
}

ringlet::AverageOptions ringlet::c::average_options(const ringlet_average_options* given, const ringlet::AverageOptions& defaults) {
  const auto read = options_or(given, defaults_from(defaults));
  ringlet::AverageOptions options;
  options.all_reduce_size = read.all_reduce_size;
  if (read.first_bucket_size >= 0) options.first_bucket_size = read.first_bucket_size;
  options.communication_type = optional_wire(read.communication_type, "communication_type", read.feedback, read.least_elements);
  options.weight = optional_weight(read.weight);
  options.stream = stream_of(read.stream);
  return options;
}

int32_t ringlet_average_options_init(ringlet_average_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, defaults_from({}));
}

int32_t ringlet_average_gradients(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                  const ringlet_average_options* options) {
  return guarded(__func__, [&] {
    ringlet::average_gradients(value_of(group, "group"), tree_of(gradients, count, "gradients"), average_options(options, {}));
  });
}

int32_t ringlet_averager_create(ringlet_group* group, const ringlet_average_options* options, ringlet_averager** averager) {
  return guarded(__func__, [&] {
    give(averager, "averager", [&] { return ringlet::GradientAverager(value_of(group, "group"), average_options(options, {})); });
  });
}
int32_t ringlet_averager_add(ringlet_averager* averager, const ringlet_tensor* gradient) {
  return guarded(__func__, [&] { value_of(averager, "averager").add(written_view(gradient, "gradient")); });
}
int32_t ringlet_averager_finish(ringlet_averager* averager) {
  return guarded(__func__, [&] { value_of(averager, "averager").finish(); });
}
int32_t ringlet_averager_set_weight(ringlet_averager* averager, const double* weight) {
  return guarded(__func__, [&] { value_of(averager, "averager").set_weight(optional_weight(weight)); });
}
void ringlet_averager_free(ringlet_averager* averager) { delete averager; }

int32_t ringlet_bucketer_create(ringlet_group* group, const ringlet_named_tensor* gradients, size_t count,
                                const ringlet_average_options* options, int32_t allow_missing, ringlet_bucketer** bucketer) {
  return guarded(__func__, [&] {
    give(bucketer, "bucketer", [&] {
      const ringlet::BucketerOptions defaults;
      return ringlet::GradientBucketer(value_of(group, "group"), tree_of(gradients, count, "gradients"),
                                       {.average = average_options(options, defaults.average), .allow_missing = allow_missing != 0});
    });
  });
}
int32_t ringlet_bucketer_ready(ringlet_bucketer* bucketer, size_t index) {
  return guarded(__func__, [&] { value_of(bucketer, "bucketer").ready(index); });
}
int32_t ringlet_bucketer_ready_name(ringlet_bucketer* bucketer, const char* name) {
  return guarded(__func__, [&] { value_of(bucketer, "bucketer").ready(required(name, "name")); });
}
int32_t ringlet_bucketer_finish(ringlet_bucketer* bucketer) {
  return guarded(__func__, [&] { value_of(bucketer, "bucketer").finish(); });
}
int32_t ringlet_bucketer_averaged(ringlet_bucketer* bucketer, const ringlet_named_tensor** gradients, size_t* count) {
  return guarded(__func__, [&] {
    auto& handle = *required(bucketer, "bucketer");
    handle.averaged = ExportedTree(handle.value.averaged());
    handle.averaged.give(gradients, count);
  });
}
int32_t ringlet_bucketer_set_weight(ringlet_bucketer* bucketer, const double* weight) {
  return guarded(__func__, [&] { value_of(bucketer, "bucketer").set_weight(optional_weight(weight)); });
}
void ringlet_bucketer_free(ringlet_bucketer* bucketer) { delete bucketer; }
