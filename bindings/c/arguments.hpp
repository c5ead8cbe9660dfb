#pragma once

#include <ringlet/c/elastic.h>

#include <memory>
#include <ringlet/average_options.hpp>
#include <ringlet/elastic.hpp>
#include <ringlet/group.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <string>

#include "bindings/c/guard.hpp"

// These functions convert and check the arguments of C functions. `name` is the argument's name, for the message. All of them throw
// `BadArgument`, or `Error` if the C++ library reports the mistake more precisely.

namespace ringlet::c {

/// Returns the pointer, which must not be NULL.
template <class T>
T* required(T* pointer, const char* name) {
  if (pointer == nullptr) throw BadArgument(std::string(name) + " is NULL");
  return pointer;
}

/// Returns the C++ object that a handle holds.
template <class Handle>
auto& value_of(Handle* handle, const char* name) {
  return required(handle, name)->value;
}

/// Writes a new handle that holds what `make` returns. `*handle` is NULL before that, and so also on failure.
template <class Handle, class Make>
void give(Handle** handle, const char* name, Make make) {
  *required(handle, name) = nullptr;
  // Memory for the handle is taken before `make` runs, so nothing that it starts is lost.
  *handle = new Handle{make()};
}

ReduceOp reduce_op(int32_t op);
std::optional<DType> optional_dtype(int32_t dtype, const char* name);
/// Of a dtype or a ringlet_wire; the other arguments are those of blocks.
std::optional<Wire> optional_wire(int32_t wire, const char* name, int32_t feedback, int64_t least_elements);
std::chrono::milliseconds milliseconds(int64_t count, const char* name);
std::optional<std::chrono::milliseconds> optional_milliseconds(int64_t count, const char* name);
Stream stream_of(int32_t number);

ConstTensorView read_view(const ringlet_tensor* tensor, const char* name);
TensorView written_view(const ringlet_tensor* tensor, const char* name);
Tree tree_of(const ringlet_named_tensor* tensors, size_t count, const char* name);

/// Returns the `count` elements; `elements` may be NULL only if `count` is 0.
template <class T>
std::span<const T> array_of(const T* elements, size_t count, const char* name) {
  if (count > 0) required(elements, name);
  return {elements, count};
}

/// Copies the caller's struct, of whatever library version, over `options`, which hold the defaults. Both structs begin with their size.
void read_options(const void* given, void* options, size_t size);
/// Copies `defaults` into the caller's struct of `given_size` bytes.
void write_options(void* given, size_t given_size, const void* defaults, size_t size);

/// Returns the defaults, overwritten by what the caller has set; `given` may be NULL.
template <class Options>
Options options_or(const Options* given, Options defaults) {
  if (given != nullptr) read_options(given, &defaults, sizeof defaults);
  return defaults;
}

/// The body of a C function that fills in default options.
template <class Options>
int32_t init_options(const char* call, Options* options, size_t struct_size, const Options& defaults) noexcept {
  return guarded(call, [&] { write_options(required(options, "options"), struct_size, &defaults, sizeof defaults); });
}

CallOptions call_options(const ringlet_call_options* options);
AverageOptions average_options(const ringlet_average_options* given, const AverageOptions& defaults);
ElasticTrainerOptions elastic_options(const ringlet_elastic_options* given);

}  // namespace ringlet::c
