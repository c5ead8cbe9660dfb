#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;

namespace {

constexpr std::size_t kCount = (std::size_t{5} << 30) / 2;  // more than 31 bits count

/// Returns a value that differs between ranks, and between places that are a power of two apart.
std::uint8_t value_of(int rank, std::size_t index) {
  return static_cast<std::uint8_t>(index * 31 + (index >> 8) * 17 + (index >> 16) * 13 + (index >> 24) * 7 + (index >> 31) * 101 +
                                   static_cast<std::size_t>(rank) * 3);
}

void fill(std::span<std::uint8_t> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(rank, i);
}

std::size_t first_wrong(std::span<const std::uint8_t> values, std::initializer_list<int> ranks) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint8_t sum = 0;
    for (const int rank : ranks) sum = static_cast<std::uint8_t>(sum + value_of(rank, i));
    if (values[i] != sum) return i;
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
