#include "sim/byte_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ringlet::sim {

void ByteQueue::append(ConstBytes bytes) {
  if (bytes.empty()) return;
  if (size_ + bytes.size() > capacity_) grow(size_ + bytes.size());
  const std::size_t back = (front_ + size_) & (capacity_ - 1);
  const std::size_t first = std::min(bytes.size(), capacity_ - back);
  std::memcpy(ring_.get() + back, bytes.data(), first);
  std::memcpy(ring_.get(), bytes.data() + first, bytes.size() - first);
  size_ += bytes.size();
}

void ByteQueue::take(Bytes out) {
  copy_front(out);
  drop_front(out.size());
}

void ByteQueue::drop_front(std::size_t bytes) {
  if (bytes == 0) return;
  front_ = (front_ + bytes) & (capacity_ - 1);
  size_ -= bytes;
}

void ByteQueue::release() { *this = ByteQueue{}; }

void ByteQueue::grow(std::size_t least) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(least, 256));
  std::unique_ptr<std::byte[]> ring(new std::byte[capacity]);
  copy_front({ring.get(), size_});
  ring_ = std::move(ring);
  capacity_ = capacity;
  front_ = 0;
}

void ByteQueue::copy_front(Bytes out) const {
  if (out.empty()) return;
  const std::size_t first = std::min(out.size(), capacity_ - front_);
  std::memcpy(out.data(), ring_.get() + front_, first);
  std::memcpy(out.data() + first, ring_.get(), out.size() - first);
}

std::uint64_t hash_bytes(ConstBytes bytes) {
  constexpr std::uint64_t kFactor = 0x9fb21c651e98df25U;
  std::uint64_t hash = bytes.size();
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  }
  word = 0;
  if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
  hash = (hash ^ word) * kFactor;
  return hash ^ (hash >> 32);
}

}  // namespace ringlet::sim
