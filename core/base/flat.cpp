#include "core/base/flat.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ringlet {

namespace {

/// Calls `visit` for every run of bytes that are adjacent in the view, with their address, their offset in the range, and their length.
template <class View, class Visit>
void for_each_run(const View& view, std::size_t offset, std::size_t length, Visit visit) {
  const std::size_t element = size_of(view.dtype());
  const Shape& shape = view.shape();
  std::size_t outer = shape.axes();  // axes from here on are dense
  std::size_t dense = 1;
  while (outer > 0 && (shape[outer - 1] == 1 || view.stride(outer - 1) == static_cast<std::int64_t>(dense)))
    dense *= static_cast<std::size_t>(shape[--outer]);
  for (std::size_t done = 0; done < length;) {
    const std::size_t index = (offset + done) / element;
    std::size_t rest = index / dense;
    auto place = static_cast<std::int64_t>(index % dense);
    for (std::size_t axis = outer; axis > 0; --axis) {
      const auto extent = static_cast<std::size_t>(shape[axis - 1]);
      place += static_cast<std::int64_t>(rest % extent) * view.stride(axis - 1);
      rest /= extent;
    }
    const std::size_t run = std::min((dense - index % dense) * element, length - done);
    visit(view.data() + place * static_cast<std::int64_t>(element), done, run);
    done += run;
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
