#include "arrays.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ringlet/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "errors.hpp"

namespace ringlet::python {
namespace {

constexpr std::size_t kAlignment = 64;

/// What a capsule `__array_struct__` of NumPy's array interface points to, version 3.
struct ArrayInterface {
  static constexpr int kNotSwapped = 0x200;
  static constexpr int kWritable = 0x400;

  int two;  // always 2
  int axes;
  char kind;
  int item_bytes;
  int flags;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;  // in bytes
  void* data;
  PyObject* description;
};

std::string dtype_text(nb::handle array) { return nb::cast<std::string>(nb::str(nb::handle(nb::getattr(array, "dtype", nb::none())))); }

DType dtype_of_interface(const ArrayInterface& interface, nb::handle array) {
  const auto sized = [&](ElementKind kind) {
    for (std::size_t number = 0; number < kDTypeCount; ++number)
      if (const auto dtype = static_cast<DType>(number); kind_of(dtype) == kind && static_cast<int>(size_of(dtype)) == interface.item_bytes)
        return dtype;
    refuse("an array of dtype '" + dtype_text(array) + "': Ringlet has no such dtype");
  };
  // NumPy does not mark arrays of records, and of what else it has no byte order for.
  if (std::string_view("uifc").find(interface.kind) != std::string_view::npos && interface.item_bytes > 1 &&
      !(interface.flags & ArrayInterface::kNotSwapped))
    refuse("an array of dtype '" + dtype_text(array) + "' has the other byte order; convert it with astype()");
  switch (interface.kind) {
    case 'b':
      return sized(ElementKind::boolean);
    case 'u':
      return sized(ElementKind::unsigned_integer);
    case 'i':
      return sized(ElementKind::signed_integer);
    case 'f':
      return sized(ElementKind::ieee_float);
    case 'c':
      return sized(ElementKind::complex);
    default:
      break;
  }
  // ml_dtypes' types are known by their names alone.
  if (dtype_text(array) == "bfloat16") return DType::bf16;
  refuse("an array of dtype '" + dtype_text(array) + "': Ringlet has no such dtype");
}

std::uint8_t dlpack_code(ElementKind kind) {
  switch (kind) {
    case ElementKind::boolean:
      return static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bool);
    case ElementKind::unsigned_integer:
      return static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt);
    case ElementKind::signed_integer:
      return static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int);
    case ElementKind::ieee_float:
      return static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float);
    case ElementKind::brain_float:
      return static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat);
    case ElementKind::complex:
      break;
  }
  return static_cast<std::uint8_t>(nb::dlpack::dtype_code::Complex);
}

DType dtype_of_dlpack(const nb::dlpack::dtype& type) {
  for (std::size_t number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (type.lanes == 1 && type.code == dlpack_code(kind_of(dtype)) && type.bits == size_of(dtype) * 8) return dtype;
  }
  refuse("an array of DLPack's type code " + std::to_string(type.code) + " with " + std::to_string(type.bits) +
         " bits: Ringlet has no such dtype");
}

DType dtype_of_name(std::string_view name) {
  const std::optional<DType> dtype = find_dtype(name);
  if (!dtype) refuse("'" + std::string(name) + "' is no dtype");
  return *dtype;
}

Shape shape_of(const std::vector<std::int64_t>& extents) { return Shape(std::span<const std::int64_t>(extents)); }

std::string class_name(nb::handle array) {
  return nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(array.ptr()))).attr("__name__"));
}

void check_alignment(const ConstTensorView& view) {
  const std::size_t alignment = size_of(part_dtype(view.dtype()));
  if (view.count() != 0 && reinterpret_cast<std::uintptr_t>(view.data()) % alignment != 0)
    refuse("the array " + describe(view) + " is not aligned to its elements; pass a copy");
}

/// Bytes as a buffer that may be written: own ones, of which the first is at a multiple of 64, or another object's.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : size_(bytes) {
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    if (whole < bytes) throw std::bad_alloc();
    own_.reset(std::aligned_alloc(kAlignment, whole));
    if (!own_) throw std::bad_alloc();
    first_ = own_.get();
  }
  Memory(void* first, std::size_t bytes, nb::object owner) : first_(first), size_(bytes), owner_(std::move(owner)) {}

  void* data() const { return first_; }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<void, Free> own_;
  void* first_;
  std::size_t size_;
  nb::object owner_;
};

int get_buffer(PyObject* object, Py_buffer* buffer, int flags) {
  const auto* memory = nb::inst_ptr<Memory>(object);
  return PyBuffer_FillInfo(buffer, object, memory->data(), static_cast<Py_ssize_t>(memory->size()), 0, flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

/// The memory as an array that others take by DLPack, which works for every dtype.
nb::ndarray<nb::array_api> array_in(nb::object memory, std::string_view name, const std::vector<std::int64_t>& extents) {
  const DType dtype = dtype_of_name(name);
  const Shape shape = shape_of(extents);
  const auto& bytes = nb::cast<const Memory&>(memory);
  if (shape.count() * size_of(dtype) > bytes.size()) refuse("the memory of an array is smaller than its elements");
  const std::vector<std::size_t> sizes(extents.begin(), extents.end());
  const auto bits = static_cast<std::uint8_t>(size_of(dtype) * 8);
  return {bytes.data(), sizes.size(), sizes.data(), memory, nullptr, nb::dlpack::dtype{dlpack_code(kind_of(dtype)), bits, 1}};
}

nb::tuple shape_tuple(const Shape& shape) {
  nb::list extents;
  for (const std::int64_t extent : shape.extents()) extents.append(extent);
  return nb::tuple(extents);
}

nb::object memoryview_of(nb::handle array) {
  PyObject* const view = PyMemoryView_FromObject(array.ptr());
  if (view == nullptr) throw nb::python_error();
  return nb::steal(view);
}

/// Calls a function, and returns the error that it raises with its class; nothing where there is none, or where an attribute is missing.
template <class Function>
std::string error_of_call(Function function) {
  try {
    function();
    return {};
  } catch (nb::python_error& raised) {
    if (!raised.matches(PyExc_Exception)) throw;
    if (raised.matches(PyExc_AttributeError)) return {};
    const nb::object error = nb::borrow(raised.value());
    return class_name(error) + ": " + nb::cast<std::string>(nb::str(error));
  }
}

/// Takes an array by DLPack or as a buffer. Returns whether it could be.
template <class Taken>
bool take_exported(nb::handle array, Taken& taken) {
  nb::object exporter = nb::borrow(array);
  // nanobind reads the strides of a buffer, which those of ctypes lack and a memoryview has.
  if (PyObject_CheckBuffer(array.ptr()) && !nb::hasattr(array, "__dlpack__") &&
      !error_of_call([&] { exporter = memoryview_of(array); }).empty())
    return false;
  return nb::try_cast(exporter, taken, false);
}

/// Refuses an array that was not taken: for the reason that it gives itself where it is asked for its memory, or else for `reason`.
[[noreturn]] void refuse_array(nb::handle array, const std::string& what, const std::string& reason) {
  std::string own = error_of_call([&] { static_cast<void>(nb::object(array.attr("__array_struct__"))); });
  if (own.empty()) own = error_of_call([&] { static_cast<void>(array.attr("__dlpack__")()); });
  if (own.empty() && PyObject_CheckBuffer(array.ptr())) own = error_of_call([&] { static_cast<void>(memoryview_of(array)); });
  refuse("a " + class_name(array) + what + (own.empty() ? reason : ": " + own));
}

}  // namespace

ArrayView::ArrayView(nb::handle array, Access access) {
  if (nb::isinstance<ArrayView>(array)) {
    *this = nb::cast<const ArrayView&>(array);
    if (access == Access::write) static_cast<void>(writable());
    return;
  }
  if (const nb::object interface = nb::getattr(array, "__array_struct__", nb::none()); PyCapsule_IsValid(interface.ptr(), nullptr)) {
    take_interface(interface, array, access);
  } else if (access == Access::write) {
    nb::ndarray<nb::device::cpu> taken;
    if (!take_exported(array, taken))
      refuse_array(array, " cannot be written to", ": it is read-only, not in the CPU's memory, or no array");
    take_array(nb::ndarray<nb::ro>(taken), access);
  } else {
    nb::ndarray<nb::ro, nb::device::cpu> taken;
    if (!take_exported(array, taken)) refuse_array(array, " is no array in the CPU's memory", "");
    take_array(nb::ndarray<nb::ro>(taken), access);
  }
}

ArrayView::ArrayView(std::uintptr_t address, DType dtype, std::int64_t count, nb::object owner) : owner_(std::move(owner)) {
  set(reinterpret_cast<void*>(address), dtype, Shape{count}, nullptr, Access::write);
}

void ArrayView::take_interface(nb::handle capsule, nb::handle array, Access access) {
  const auto& interface = *static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  const DType dtype = dtype_of_interface(interface, array);
  if (access == Access::write && !(interface.flags & ArrayInterface::kWritable))
    refuse("the array is read-only, so it cannot hold a result");
  const auto axes = static_cast<std::size_t>(interface.axes);
  const Shape shape = shape_of({interface.shape, interface.shape + axes});
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  std::array<std::int64_t, Shape::kMaxAxes> strides{};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    if (shape[axis] <= 1) continue;  // its stride is of no meaning, and may be anything
    if (interface.strides[axis] % bytes != 0) refuse("the strides of an array are no multiples of its elements' size; pass a copy");
    strides[axis] = interface.strides[axis] / bytes;
  }
  set(interface.data, dtype, shape, strides.data(), access);
  owner_ = nb::borrow(array);
}

void ArrayView::take_array(const nb::ndarray<nb::ro>& array, Access access) {
  const Shape shape(std::span<const std::int64_t>(array.shape_ptr(), array.ndim()));
  set(const_cast<void*>(array.data()), dtype_of_dlpack(array.dtype()), shape, array.ndim() == 0 ? nullptr : array.stride_ptr(), access);
  exported_ = array;
}

void ArrayView::set(void* data, DType dtype, const Shape& shape, const std::int64_t* strides, Access access) {
  if (shape.count() == 0) strides = nullptr;  // no element is anywhere
  view_ = strides ? ConstTensorView(data, dtype, shape, {strides, shape.axes()}) : ConstTensorView(data, dtype, shape);
  check_alignment(view_);
  if (access == Access::read) return;
  writable_ = strides ? TensorView(data, dtype, shape, {strides, shape.axes()}) : TensorView(data, dtype, shape);
}

TensorView ArrayView::writable() const {
  if (!writable_) refuse("the view was made for reading");
  return *writable_;
}

TensorView ArrayView::leaf() {
  if (writable_) return *writable_;
  if (view_.elements_may_overlap()) {
    copied_ = std::make_shared<Tensor>(Tensor::copy_of(view_));
    return copied_->view();
  }
  std::array<std::int64_t, Shape::kMaxAxes> strides{};
  for (std::size_t axis = 0; axis < view_.shape().axes(); ++axis) strides[axis] = view_.stride(axis);
  return {const_cast<std::byte*>(view_.data()), view_.dtype(), view_.shape(), {strides.data(), view_.shape().axes()}};
}

nb::tuple exported(const TensorView& view, nb::handle owner) {
  if (!view.contiguous()) refuse("a view with gaps cannot be exported");
  return nb::make_tuple(Memory(view.data(), view.bytes(), nb::borrow(owner)), name_of(view.dtype()), shape_tuple(view.shape()));
}

nb::tuple exported(Tensor tensor) {
  auto kept = std::make_unique<Tensor>(std::move(tensor));
  const TensorView view = kept->view();
  const nb::capsule owner(kept.get(), [](void* owned) noexcept { delete static_cast<Tensor*>(owned); });
  static_cast<void>(kept.release());
  return exported(view, owner);
}

void bind_arrays(nb::module_& module) {
  Class<Memory>(module, "Memory", "Bytes as a buffer that may be written. New ones are aligned to 64.", nb::type_slots(memory_slots))
      .def(
          "__init__", [](Memory* memory, std::size_t bytes) { new (memory) Memory(bytes); }, nb::arg("bytes"))
      .def("__len__", &Memory::size)
      .def_static("array", &array_in, nb::arg("memory"), nb::arg("dtype"), nb::arg("shape"),
                  "The memory as an array that others take by DLPack.");
  Class<ArrayView>(module, "View", "An array as the library sees it, without a copy. It keeps the array alive.")
      .def(
          "__init__",
          [](ArrayView* view, nb::handle array, bool write) { new (view) ArrayView(array, write ? Access::write : Access::read); },
          nb::arg("array"), nb::arg("write") = false)
      .def_static(
          "at",
          [](std::uintptr_t address, std::string_view dtype, std::int64_t count, nb::object owner) {
            return ArrayView(address, dtype_of_name(dtype), count, std::move(owner));
          },
          nb::arg("address"), nb::arg("dtype"), nb::arg("count"), nb::arg("owner"),
          "So many elements from an address of the CPU's memory on, which the owner keeps. They may be written.")
      .def_prop_ro("dtype", [](const ArrayView& view) { return name_of(view.readable().dtype()); })
      .def_prop_ro("shape", [](const ArrayView& view) { return shape_tuple(view.readable().shape()); })
      .def_prop_ro("address", [](const ArrayView& view) { return reinterpret_cast<std::uintptr_t>(view.readable().data()); })
      .def_prop_ro("contiguous", [](const ArrayView& view) { return view.readable().contiguous(); });
  nb::list dtypes;
  for (std::size_t number = 0; number < kDTypeCount; ++number) dtypes.append(name_of(static_cast<DType>(number)));
  module.attr("dtypes") = dtypes;
  define(
      module, "copy", [](const ArrayView& from, const ArrayView& to) { copy(from.readable(), to.writable()); }, nb::arg("source"),
      nb::arg("target"), "Copies the elements of one view to another of the same dtype and shape.");
}

}  // namespace ringlet::python
