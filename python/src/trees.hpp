#pragma once

#include <nanobind/nanobind.h>

#include <ringlet/tree.hpp>
#include <vector>

#include "arrays.hpp"

namespace ringlet::python {

/// A tree of arrays that trees.py has flattened: pairs of names and arrays. It keeps the arrays alive.
class ArrayTree {
 public:
  ArrayTree(const nb::list& leaves, Access access);

  const Tree& tree() const { return tree_; }
  const std::vector<ArrayView>& arrays() const { return arrays_; }

 private:
  std::vector<ArrayView> arrays_;
  Tree tree_;
};

/// The leaves of a tree in the library's memory, which `owner` keeps: pairs of names and what exported() returns.
nb::list exported(const Tree& tree, nb::handle owner);

/// Dtypes by name; nothing for None.
std::optional<DType> dtype_of(const std::optional<std::string>& name);

void bind_gradients(nb::module_& module);
void bind_optimizers(nb::module_& module);
void bind_fsdp(nb::module_& module);
void bind_checkpoints(nb::module_& module);
void bind_elastic(nb::module_& module);
void bind_elastic_shards(nb::module_& module);
void bind_outer(nb::module_& module);

}  // namespace ringlet::python
