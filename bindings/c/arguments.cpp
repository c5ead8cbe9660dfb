#include "bindings/c/arguments.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/arithmetic.hpp"

namespace ringlet::c {

namespace {

constexpr size_t kMaxOptionsBytes = 4096;
constexpr int64_t kMaxMilliseconds = 1'000'000'000;

DType known_dtype(int32_t dtype, const std::string& name) {
  const auto known = from_number<DType>(dtype);
  if (!known) throw BadArgument(name + " is the unknown dtype number " + std::to_string(dtype));
  return *known;
}

template <class View>
View view_of(const ringlet_tensor& tensor, const std::string& name) {
  const DType dtype = known_dtype(tensor.dtype, name + ".dtype");
  if (tensor.axes < 0 || tensor.axes > static_cast<int32_t>(Shape::kMaxAxes))
    throw BadArgument(name + " has " + std::to_string(tensor.axes) + " axes; 0 to " + std::to_string(Shape::kMaxAxes) + " are possible");
  const auto axes = static_cast<size_t>(tensor.axes);
  const auto extents = array_of(tensor.shape, axes, (name + ".shape").c_str());
  for (const int64_t extent : extents)
    if (extent < 0) throw BadArgument(name + " has the extent " + std::to_string(extent) + "; 0 is the least");
  const Shape shape(extents);
  if (!checked_bytes(extents, size_of(dtype))) throw BadArgument(name + " has the impossible shape " + to_string(shape));
  if (tensor.data == nullptr && shape.count() > 0)
    throw BadArgument(name + ".data is NULL but has " + std::to_string(shape.count()) + " elements");
  if (tensor.strides == nullptr) return View(tensor.data, dtype, shape);
  return View(tensor.data, dtype, shape, std::span<const int64_t>(tensor.strides, axes));
}

void check_size(size_t given_size) {
  if (given_size < sizeof(size_t) || given_size > kMaxOptionsBytes)
    throw BadArgument("struct_size of the options is " + std::to_string(given_size) +
                      ", which is no struct's size; fill them with their ..._options_init function first");
}

}  // namespace

ReduceOp reduce_op(int32_t op) {
  const auto known = from_number<ReduceOp>(op);
  if (!known) throw BadArgument("op is the unknown operation number " + std::to_string(op));
  return *known;
}

std::optional<DType> optional_dtype(int32_t dtype, const char* name) {
  if (dtype == RINGLET_NO_DTYPE) return std::nullopt;
  return known_dtype(dtype, name);
}

std::optional<Wire> optional_wire(int32_t wire, const char* name, int32_t feedback, int64_t least_elements) {
  static_assert(RINGLET_WIRE_INT8 == kFirstBlockFormat);
  static_assert(RINGLET_WIRE_INT4 - RINGLET_WIRE_INT8 == static_cast<int>(BlockFormat::int4) && kBlockFormatCount == 2);
  if (wire != RINGLET_WIRE_INT8 && wire != RINGLET_WIRE_INT4) return optional_dtype(wire, name);
  if (least_elements < 0) throw BadArgument("least_elements is " + std::to_string(least_elements) + "; give a number of elements from 0");
  return Wire::in_blocks(static_cast<BlockFormat>(wire - RINGLET_WIRE_INT8),
                         {.feedback = feedback != 0, .least_elements = static_cast<std::size_t>(least_elements)});
}

std::chrono::milliseconds milliseconds(int64_t count, const char* name) {
  if (count < 0 || count > kMaxMilliseconds)
    throw BadArgument(std::string(name) + " is " + std::to_string(count) + "; 0 to " + std::to_string(kMaxMilliseconds) + " are possible");
  return std::chrono::milliseconds(count);
}

std::optional<std::chrono::milliseconds> optional_milliseconds(int64_t count, const char* name) {
  if (count == 0) return std::nullopt;
  return milliseconds(count, name);
}

Stream stream_of(int32_t number) {
  if (number < 0 || number > UINT16_MAX) throw BadArgument("stream is " + std::to_string(number) + ", which does not exist");
  return {static_cast<std::uint16_t>(number)};
}

ConstTensorView read_view(const ringlet_tensor* tensor, const char* name) {
  return view_of<ConstTensorView>(*required(tensor, name), name);
}
TensorView written_view(const ringlet_tensor* tensor, const char* name) { return view_of<TensorView>(*required(tensor, name), name); }

Tree tree_of(const ringlet_named_tensor* tensors, size_t count, const char* name) {
  Tree tree;
  for (const ringlet_named_tensor& leaf : array_of(tensors, count, name)) {
    if (leaf.name == nullptr) throw BadArgument(std::string(name) + "[" + std::to_string(tree.size()) + "].name is NULL");
    tree.add(leaf.name, view_of<TensorView>(leaf.tensor, std::string(name) + " '" + leaf.name + "'"));
  }
  return tree;
}

void read_options(const void* given, void* options, size_t size) {
  size_t given_size = 0;
  std::memcpy(&given_size, given, sizeof given_size);
  check_size(given_size);
  const auto* bytes = static_cast<const unsigned char*>(given);
  if (given_size > size && std::any_of(bytes + size, bytes + given_size, [](unsigned char byte) { return byte != 0; }))
    throw BadArgument("the options set something that this version of the library (" + std::string(RINGLET_VERSION) + ") does not have");
  std::memcpy(options, given, std::min(given_size, size));
}

void write_options(void* given, size_t given_size, const void* defaults, size_t size) {
  check_size(given_size);
  std::memset(given, 0, given_size);
  std::memcpy(given, defaults, std::min(given_size, size));
  std::memcpy(given, &given_size, sizeof given_size);
}

CallOptions call_options(const ringlet_call_options* options) {
  const auto read = options_or(options, {.struct_size = sizeof *options, .timeout_ms = 0, .stream = 0});
  return {.stream = stream_of(read.stream), .timeout = optional_milliseconds(read.timeout_ms, "timeout_ms")};
}

}  // namespace ringlet::c
