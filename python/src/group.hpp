#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <ringlet/group.hpp>
#include <utility>

namespace ringlet::python {

namespace nb = nanobind;

/// A group until it is closed.
class GroupHandle {
 public:
  explicit GroupHandle(Group group) : group_(std::move(group)) {}
  GroupHandle(GroupHandle&& other) noexcept : group_(std::exchange(other.group_, std::nullopt)) {}
  GroupHandle& operator=(GroupHandle&&) = delete;
  ~GroupHandle();

  /// The group. Throws `InvalidArgument` once it is closed.
  Group& get();
  bool is_open() const { return group_.has_value(); }
  /// Leaves the group, if it is the last one that stands for it. Where a signal's handler raises, this throws that, and the leaving goes
  /// on.
  void close();

 private:
  std::optional<Group> group_;
};

/// A capsule of a group for other compiled modules: group_share.h. It stands for the group as a copy does, also when the handle is closed.
nb::capsule share_of(GroupHandle& handle);

void bind_group(nb::module_& module);
void bind_init(nb::module_& module);

}  // namespace ringlet::python
