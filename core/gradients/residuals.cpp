#include "core/gradients/residuals.hpp"

namespace ringlet {

void Residuals::begin() {
  for (Pair& pair : pairs_) pair.is_written = false;
  added_ = 0;
}

Residuals::Pair& Residuals::add(std::size_t count) {
  if (added_ == pairs_.size()) pairs_.emplace_back();
  Pair& pair = pairs_[added_++];
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

void Residuals::clear() {
  pairs_.clear();
  added_ = 0;
}

}  // namespace ringlet
