#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <ringlet/tensor.hpp>

namespace ringlet::python {

namespace nb = nanobind;

/// What a view of an array is for.
enum class Access { read, write };

/// An array of Python's as the library sees it, without a copy. It keeps the array alive. Only a thread that holds the interpreter's lock
/// may copy or destroy it.
class ArrayView {
 public:
  /// Takes what has `__array_struct__` (NumPy), DLPack (PyTorch, JAX, MLX) or a buffer. Throws `InvalidArgument` for a dtype that
  /// Ringlet does not have, the other byte order, memory that is not aligned or not the CPU's, and to write what is read-only.
  ArrayView(nb::handle array, Access access);
  /// `count` elements in the CPU's memory that `owner` keeps, and that may be written: for callers who know an array's insides.
  ArrayView(std::uintptr_t address, DType dtype, std::int64_t count, nb::object owner);

  /// The elements; valid as long as this object or a copy of it is. writable() is for views that were made for writing.
  ///@{
  TensorView writable() const;
  const ConstTensorView& readable() const { return view_; }
  ///@}
  /// The elements for a tree, whose leaves have no read-only form: what is given a view that was made for reading must not write. Of
  /// elements that share memory, which no leaf may, it is a copy.
  TensorView leaf();

 private:
  void take_interface(nb::handle capsule, nb::handle array, Access access);
  void take_array(const nb::ndarray<nb::ro>& array, Access access);
  void set(void* data, DType dtype, const Shape& shape, const std::int64_t* strides, Access access);

  nb::object owner_;
  nb::ndarray<nb::ro> exported_;  // of an array that was taken by DLPack or as a buffer
  ConstTensorView view_;
  std::optional<TensorView> writable_;
  std::shared_ptr<Tensor> copied_;
};

/// The memory of a view, as an array that keeps `owner` alive, with the name of its dtype and its shape: what arrays.py makes an array of.
nb::tuple exported(const TensorView& view, nb::handle owner);
/// The same of a tensor that the array then owns.
nb::tuple exported(Tensor tensor);

/// Registers `View`, with dtype and shape, and `Memory`, aligned to 64 bytes.
void bind_arrays(nb::module_& module);

}  // namespace ringlet::python
