#pragma once

// Apart from ringlet.hpp, because it needs DLPack's header (Debian: libdlpack-dev).
#include <dlpack/dlpack.h>

#include <ringlet/error.hpp>
#include <ringlet/tensor.hpp>
#include <string>

namespace ringlet {

namespace detail {

/// Nothing of DLPack's that Ringlet has no dtype for.
inline std::optional<DType> dtype_from_dlpack(const DLDataType& type) {
  if (type.lanes != 1) return std::nullopt;
  const auto pick = [&](std::initializer_list<DType> dtypes) -> std::optional<DType> {
    for (const DType dtype : dtypes)
      if (size_of(dtype) * 8 == type.bits) return dtype;
    return std::nullopt;
  };
  constexpr std::uint8_t kBool = 6;  // newer than the oldest header that serves
  switch (type.code) {
    case kDLUInt:
      return pick({DType::u8, DType::u16, DType::u32, DType::u64});
    case kDLInt:
      return pick({DType::i8, DType::i16, DType::i32, DType::i64});
    case kDLFloat:
      return pick({DType::f16, DType::f32, DType::f64});
    case kDLBfloat:
      return pick({DType::bf16});
    case kDLComplex:
      return pick({DType::complex64});
    case kBool:
      return pick({DType::boolean});
    default:
      return std::nullopt;
  }
}

}  // namespace detail

/// Views a DLPack tensor in the CPU's memory, without copying; borrowed for as long as the view is used. Throws `InvalidArgument` for
/// another device, for a dtype that Ringlet does not have, and as `TensorView` does for its shape and strides.
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
