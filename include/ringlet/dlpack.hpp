#pragma once

// ringlet.hpp does not include this header, because it needs DLPack's header (Debian: libdlpack-dev).
#include <dlpack/dlpack.h>

#include <ringlet/error.hpp>
#include <ringlet/tensor.hpp>
#include <string>

namespace ringlet {

namespace detail {

/// The DLPack type code of a kind of number.
constexpr std::uint8_t dlpack_code(ElementKind kind) {
  switch (kind) {
    case ElementKind::unsigned_integer:
      return kDLUInt;
    case ElementKind::signed_integer:
      return kDLInt;
    case ElementKind::ieee_float:
      return kDLFloat;
    case ElementKind::brain_float:
      return kDLBfloat;
    case ElementKind::complex:
      return kDLComplex;
    case ElementKind::boolean:
      break;
  }
  return 6;  // kDLBool, which the oldest supported DLPack header does not define
}

/// Returns nothing if Ringlet has no dtype for the type that DLPack describes.
inline std::optional<DType> dtype_from_dlpack(const DLDataType& type) {
  for (const DTypeFacts& facts : kDTypes)
    if (type.lanes == 1 && type.code == dlpack_code(facts.kind) && type.bits == facts.bytes * 8) return facts.dtype;
  return std::nullopt;
}

}  // namespace detail

/// Views a DLPack tensor in the CPU's memory without copying it. The memory is borrowed for as long as the view is used. Throws
/// `InvalidArgument` for another device and for a dtype that Ringlet does not have, and as `TensorView` does for shape and strides.
inline TensorView view_of(const DLTensor& tensor) {
  const auto refuse = [](std::string text) { throw InvalidArgument({Errc::invalid_argument, "DLPack tensor: " + std::move(text)}); };
  if (tensor.device.device_type != kDLCPU && tensor.device.device_type != kDLCUDAHost)
    refuse("it is on device type " + std::to_string(static_cast<int>(tensor.device.device_type)) + "; copy it to the CPU first");
  const auto dtype = detail::dtype_from_dlpack(tensor.dtype);
  if (!dtype)
    refuse("type code " + std::to_string(tensor.dtype.code) + " of " + std::to_string(tensor.dtype.bits) + " bits and " +
           std::to_string(tensor.dtype.lanes) + " lanes has no dtype here");
  if (tensor.ndim < 0) refuse(std::to_string(tensor.ndim) + " axes");
  const auto axes = static_cast<std::size_t>(tensor.ndim);
  const Shape shape(std::span<const std::int64_t>(tensor.shape, axes));
  std::byte* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  if (tensor.strides == nullptr) return {data, *dtype, shape};
  return {data, *dtype, shape, std::span<const std::int64_t>(tensor.strides, axes)};
}

}  // namespace ringlet
