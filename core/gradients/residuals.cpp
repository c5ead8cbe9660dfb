#include "core/gradients/residuals.hpp"

#include <utility>

namespace ringlet {

void Residuals::begin() {
  for (Pair& pair : pairs_) pair.is_written = false;
  added_ = 0;
}

Residuals::Pair& Residuals::at(std::size_t number, std::size_t count) {
  if (number >= pairs_.size()) pairs_.resize(number + 1);
  Pair& pair = pairs_[number];
  if (pair.committed.size() != count) pair.committed.assign(count, 0.0F);
  pair.next.resize(count);
  pair.is_written = true;
  return pair;
}

void Residuals::commit() {
  for (Pair& pair : pairs_) {
    if (pair.is_written) pair.committed.swap(pair.next);
    pair.is_written = false;
  }
}

void Residuals::set(std::size_t number, std::vector<float> committed) {
  if (number >= pairs_.size()) pairs_.resize(number + 1);
  pairs_[number] = {std::move(committed), {}};
}

void Residuals::clear() {
  pairs_.clear();
  added_ = 0;
}

}  // namespace ringlet
