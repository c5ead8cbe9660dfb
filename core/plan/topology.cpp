#include "core/plan/topology.hpp"

#include <algorithm>

namespace ringlet {

Topology::Topology(const std::vector<bool>& is_guest, const LeafLimits& limits) : leaf_limits_(limits) {
  if (std::find(is_guest.begin(), is_guest.end(), true) == is_guest.end()) return;
  is_guest_ = is_guest;
  std::vector<int> natives, guests;
  for (int rank = 0; rank < static_cast<int>(is_guest.size()); ++rank) {
    const bool guest = is_guest[static_cast<std::size_t>(rank)];
    native_index_.push_back(guest ? -1 : static_cast<int>(natives.size()));
    (guest ? guests : natives).push_back(rank);
  }
  guests_ = static_cast<int>(guests.size());
  if (natives.empty()) ring_ = guests;
  for (std::size_t i = 0; i < natives.size(); ++i) {
    const auto boundary = [&](std::size_t gap) { return static_cast<std::ptrdiff_t>(gap * guests.size() / natives.size()); };
    ring_.push_back(natives[i]);
    ring_.insert(ring_.end(), guests.begin() + boundary(i), guests.begin() + boundary(i + 1));
  }
  place_.resize(ring_.size());
  for (std::size_t place = 0; place < ring_.size(); ++place) place_[static_cast<std::size_t>(ring_[place])] = static_cast<int>(place);
}

Topology Topology::of_world(int size, int guests, const LeafLimits& limits) {
  std::vector<bool> is_guest(static_cast<std::size_t>(size));
  std::fill(is_guest.end() - guests, is_guest.end(), true);
  return Topology(is_guest, limits);
}

void Topology::set_machines(const std::vector<int>& machine_of, const MachineLimits& limits) {
  machine_limits_ = limits;
  machines_.clear();
  machine_of_.clear();
  std::vector<int> numbers;  // by machine, as in `machine_of`
  for (std::size_t rank = 0; rank < machine_of.size(); ++rank) {
    const auto known = std::find(numbers.begin(), numbers.end(), machine_of[rank]);
    const auto machine = static_cast<std::size_t>(known - numbers.begin());
    if (known == numbers.end()) {
      numbers.push_back(machine_of[rank]);
      machines_.emplace_back();
    }
    machines_[machine].push_back(static_cast<int>(rank));
    machine_of_.push_back(static_cast<int>(machine));
  }
  if (machines_.size() == machine_of.size() || machines_.size() < 2) machines_.clear();
}

int Topology::along_ring(int rank, int offset, int size) const {
  const auto wrapped = [size](int place) { return (place % size + size) % size; };
  if (!has_guests()) return wrapped(rank + offset);
  return ring_[static_cast<std::size_t>(wrapped(place_[static_cast<std::size_t>(rank)] + offset))];
}

int Topology::relayed_edges() const {
  int edges = 0;
  const int size = static_cast<int>(ring_.size());
  for (int rank = 0; rank < size; ++rank) edges += is_guest(rank) && is_guest(along_ring(rank, 1, size)) ? 1 : 0;
  return edges;
}

}  // namespace ringlet
