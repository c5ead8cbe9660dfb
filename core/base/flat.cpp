#include "core/base/flat.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace ringlet {

namespace {

/// Calls `visit` for every run of bytes that are adjacent in the view, with their address, their offset in the range, and their length.
template <class View, class Visit>
void for_each_run(const View& view, std::size_t offset, std::size_t length, Visit visit) {
  if (length == 0) return;
  const std::size_t element = size_of(view.dtype());
  const Shape& shape = view.shape();
  std::size_t outer = shape.axes();  // axes from here on are dense
  std::size_t dense = 1;
  while (outer > 0 && (shape[outer - 1] == 1 || view.stride(outer - 1) == static_cast<std::int64_t>(dense)))
    dense *= static_cast<std::size_t>(shape[--outer]);
  // The indices of the run, which are counted up from one run to the next, and where it begins.
  std::array<std::int64_t, Shape::kMaxAxes> indices{};
  std::int64_t place = 0;
  std::size_t inside = offset / element % dense;  // of the first run
  auto rest = static_cast<std::int64_t>(offset / element / dense);
  for (std::size_t axis = outer; axis > 0; --axis) {
    indices[axis - 1] = rest % shape[axis - 1];
    rest /= shape[axis - 1];
    place += indices[axis - 1] * view.stride(axis - 1);
  }
  for (std::size_t done = 0; done < length; inside = 0) {
    const std::size_t run = std::min((dense - inside) * element, length - done);
    visit(view.data() + (place + static_cast<std::int64_t>(inside)) * static_cast<std::int64_t>(element), done, run);
    done += run;
    for (std::size_t axis = outer; axis > 0; --axis) {
      place += view.stride(axis - 1);
      if (++indices[axis - 1] < shape[axis - 1]) break;
      place -= shape[axis - 1] * view.stride(axis - 1);
      indices[axis - 1] = 0;
    }
  }
}

}  // namespace

void gather(ConstTensorView from, std::size_t offset, std::span<std::byte> to) {
  for_each_run(from, offset, to.size(),
               [&](const std::byte* place, std::size_t at, std::size_t bytes) { std::memcpy(to.data() + at, place, bytes); });
}

void scatter(std::span<const std::byte> from, TensorView to, std::size_t offset) {
  for_each_run(to, offset, from.size(),
               [&](std::byte* place, std::size_t at, std::size_t bytes) { std::memcpy(place, from.data() + at, bytes); });
}

}  // namespace ringlet
