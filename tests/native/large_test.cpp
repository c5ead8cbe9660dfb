#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;

namespace {

constexpr std::size_t kCount = (std::size_t{5} << 30) / 2;  // more than 31 bits count

constexpr std::size_t kBlock = 256;
using Block = std::array<std::uint8_t, kBlock>;

/// The blocks that a pass over a buffer copies or compares, by their first value: first, first + step, first + 2 step and so on. They are
/// made once, since there are ten million blocks.
class Blocks {
 public:
  explicit Blocks(std::size_t step) {
    for (std::size_t first = 0; first < kBlock; ++first)
      for (std::size_t index = 0; index < kBlock; ++index) blocks_[first][index] = static_cast<std::uint8_t>(first + step * index);
  }
  const Block& with_first(std::size_t first) const { return blocks_[first % kBlock]; }

 private:
  std::array<Block, kBlock> blocks_;
};

constexpr std::size_t kStep = 31;

/// Returns the first value of a block. Values differ between ranks, and between places that are a power of two apart.
std::size_t first_of_block(int rank, std::size_t index) {
  return (index >> 8) * 17 + (index >> 16) * 13 + (index >> 24) * 7 + (index >> 31) * 101 + static_cast<std::size_t>(rank) * 3;
}

void fill(std::span<std::uint8_t> values, int rank) {
  const Blocks blocks(kStep);
  for (std::size_t at = 0; at < values.size(); at += kBlock)
    std::memcpy(values.data() + at, blocks.with_first(first_of_block(rank, at)).data(), std::min(kBlock, values.size() - at));
}

/// Returns the first index whose value is not the sum of the ranks' values, or the number of values.
std::size_t first_wrong(std::span<const std::uint8_t> values, std::initializer_list<int> ranks) {
  const Blocks sums(kStep * ranks.size());
  for (std::size_t at = 0; at < values.size(); at += kBlock) {
    const auto block = values.subspan(at, std::min(kBlock, values.size() - at));
    std::size_t first = 0;
    for (const int rank : ranks) first += first_of_block(rank, at);
    const Block& sum = sums.with_first(first);
    if (std::memcmp(block.data(), sum.data(), block.size()) == 0) continue;
    return at + static_cast<std::size_t>(std::mismatch(block.begin(), block.end(), sum.begin()).first - block.begin());
  }
  return values.size();
}

bool has_memory(std::size_t bytes) {
  const auto pages = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES));
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >= bytes;
}

}  // namespace

TEST_CASE("buffers of 2.5 GiB are summed and sent whole") {
  if (!has_memory(std::size_t{6} << 30)) {
    WARN("less than 6 GiB of memory are free: not tested");
    return;
  }
  test::run_ranks(2, [](Group& world) {
    const int rank = world.rank();
    Tensor tensor(DType::u8, Shape{static_cast<std::int64_t>(kCount)});
    const auto values = tensor.values<std::uint8_t>();
    fill(values, rank);
    world.all_sum(tensor);
    const std::size_t wrong_sum = first_wrong(values, {0, 1});
    expect(wrong_sum == kCount, "wrong sum at " + std::to_string(wrong_sum));

    fill(values, rank);
    rank == 0 ? world.send(tensor, 1) : world.recv(tensor, 0);
    const std::size_t wrong = first_wrong(values, {0});
    expect(wrong == kCount, "wrong message at " + std::to_string(wrong));
  });
}
