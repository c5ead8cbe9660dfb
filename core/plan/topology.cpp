#include "core/plan/topology.hpp"

#include <algorithm>
#include <functional>

namespace ringlet {

// The load T of the busiest owners is the one for which their shares f = (T * speed - 1) / (size - 2) add up to 1. It is
// T = (size - 2 + owners) / (sum of the owners' speeds), and multiplied by size - 2 and that sum, a share is a whole number.
std::vector<std::uint32_t> weights_of_owners(std::span<const std::uint32_t> speeds, int size) {
  std::vector<std::uint32_t> weights(speeds.size(), 1);
  if (size <= 2) return weights;
  std::vector<std::int64_t> shares(speeds.size(), 1);
  for (bool changed = true; changed;) {
    changed = false;
    std::int64_t owners = 0, sum = 0;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      if (shares[i] <= 0) continue;
      ++owners;
      sum += speeds[i];
    }
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      if (shares[i] <= 0) continue;
      shares[i] = (size - 2 + owners) * speeds[i] - sum;
      changed |= shares[i] <= 0;
    }
  }
  const std::int64_t largest = speeds.empty() ? 1 : *std::max_element(shares.begin(), shares.end());
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const std::int64_t scaled = (shares[i] * kFullSpeed + largest / 2) / largest;
    weights[i] = shares[i] <= 0 ? 0 : static_cast<std::uint32_t>(std::max<std::int64_t>(scaled, 1));
  }
  return weights;
}

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

void Topology::set_speeds(std::span<const std::uint32_t> speeds) {
  speeds_.clear();
  owner_index_.clear();
  owner_weights_.clear();
  std::vector<std::uint32_t> native_speeds;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank)
    if (!is_guest(static_cast<int>(rank))) native_speeds.push_back(speeds[rank]);
  const bool differ = std::adjacent_find(native_speeds.begin(), native_speeds.end(), std::not_equal_to<>()) != native_speeds.end();
  if (!differ || speeds.size() <= 2) return;
  speeds_.assign(speeds.begin(), speeds.end());
  owner_index_.assign(speeds.size(), -1);
  const std::vector<std::uint32_t> weights = weights_of_owners(native_speeds, static_cast<int>(speeds.size()));
  for (std::size_t rank = 0, native = 0; rank < speeds.size(); ++rank) {
    if (is_guest(static_cast<int>(rank))) continue;
    const std::uint32_t weight = weights[native++];
    if (weight == 0) continue;
    owner_index_[rank] = static_cast<int>(owner_weights_.size());
    owner_weights_.push_back(weight);
  }
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
