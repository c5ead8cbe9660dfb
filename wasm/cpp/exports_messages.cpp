#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;
using browser::OperationOptions;

namespace {

/// Starts a message: `make` makes the task from the shape and the WorldOptions, and `give` hands it to the engine.
template <class Make, class Give>
int32_t start_message(const OperationOptions& options, const uint32_t* shape, int32_t axes, Make make, Give give) {
  const auto group = browser::check(options);
  if (!group.ok()) return browser::report(group.status());
  if (axes < 0 || axes > static_cast<int32_t>(Shape::kMaxAxes))
    return browser::report({Errc::invalid_argument,
                            "a shape of " + std::to_string(axes) + " axes; at most " + std::to_string(Shape::kMaxAxes) + " are possible"});
  const std::vector<std::int64_t> extents(shape, shape + axes);
  GroupEngine& engine = group.value()->engine;
  Result<MessageTask> task = make(Shape(std::span(extents)), engine.options());
  if (!task.ok()) return browser::report(task.status());
  task.value().timeout = browser::timeout_of(options, *group.value());
  task.value().completion = browser::completion_of(options.ticket);
  give(engine, static_cast<std::uint16_t>(options.stream), std::move(task).value());
  return browser::report({});
}

}  // namespace

int32_t ringlet_send(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* values,
                     const uint32_t* shape, int32_t axes, int32_t destination) {
  return start_message(
      {ticket, group, stream, timeout_ms}, shape, axes,
      [&](const Shape& extents, const WorldOptions& world) {
        return make_send(ConstTensorView(values, static_cast<DType>(dtype), extents), destination, world);
      },
      [](GroupEngine& engine, std::uint16_t id, MessageTask task) { engine.send(id, std::move(task)); });
}

int32_t ringlet_receive(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, void* values,
                        const uint32_t* shape, int32_t axes, int32_t source) {
  return start_message(
      {ticket, group, stream, timeout_ms}, shape, axes,
      [&](const Shape& extents, const WorldOptions& world) {
        return make_receive(TensorView(values, static_cast<DType>(dtype), extents), source, world);
      },
      [](GroupEngine& engine, std::uint16_t id, MessageTask task) { engine.receive(id, std::move(task)); });
}
