#include <catch2/catch.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;

namespace {

constexpr float kUntouched = -77.f;

/// Every second number of a larger array.
struct Gapped {
  explicit Gapped(std::size_t count, float first = 0) : memory(2 * count, kUntouched) {
    for (std::size_t i = 0; i < count; ++i) memory[2 * i] = first + static_cast<float>(i);
  }
  TensorView view() {
    return {memory.data(), DType::f32, Shape{static_cast<std::int64_t>(memory.size() / 2)}, std::array<std::int64_t, 1>{2}};
  }
  void expect_values(const std::vector<float>& wanted, const std::string& what) const {
    expect(memory.size() == 2 * wanted.size(), what);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      expect(memory[2 * i] == wanted[i], [&] { return what + ": element " + std::to_string(i); });
      expect(memory[2 * i + 1] == kUntouched, [&] { return what + ": the gap after " + std::to_string(i); });
    }
  }
  std::vector<float> memory;
};

}  // namespace

TEST_CASE("every call takes views with gaps, blocking and asynchronous, and leaves the gaps alone") {
  test::run_ranks(2, [](Group& world) {
    const auto rank = static_cast<float>(world.rank());
    const bool root = world.rank() == 0;
    Gapped sum(4, rank);
    world.all_sum(sum.view());
    sum.expect_values({1, 3, 5, 7}, "all_sum");
    Gapped in(4, rank), out(4);
    Work work = world.all_mean_async(in.view(), out.view());
    in = Gapped(4, 1000.f);  // the call has already packed its input
    work.wait();
    out.expect_values({0.5, 1.5, 2.5, 3.5}, "all_mean_async");

    Gapped whole(4, rank), part(2);
    world.sum_scatter(whole.view(), part.view());
    part.expect_values(root ? std::vector<float>{1, 3} : std::vector<float>{5, 7}, "sum_scatter");
    Gapped gathered(4);
    world.all_gather_async(part.view(), gathered.view()).wait();
    gathered.expect_values({1, 3, 5, 7}, "all_gather_async");
    Gapped copies(3, rank * 10);
    world.broadcast(copies.view(), 1);
    copies.expect_values({10, 11, 12}, "broadcast");
    Gapped swapped(4);
    world.all_to_all(whole.view(), swapped.view());
    swapped.expect_values(root ? std::vector<float>{0, 1, 1, 2} : std::vector<float>{2, 3, 3, 4}, "all_to_all");
    Gapped scattered(2);
    world.scatter(gathered.view(), scattered.view(), 1);
    scattered.expect_values(root ? std::vector<float>{1, 3} : std::vector<float>{5, 7}, "scatter");

    Gapped message(3, 5.f), received(3);
    if (root) {
      world.send(message.view(), 1);
    } else {
      world.recv_async(received.view(), 0).wait();
      received.expect_values({5, 6, 7}, "recv_async");
    }
  });
}

TEST_CASE("outputs of ranks that are not the root stay as they are") {
  test::run_ranks(2, [](Group& world) {
    Gapped in(2, 1.f), out(2, 40.f), all(4, 50.f);
    world.reduce(ReduceOp::sum, in.view(), out.view(), 0);
    world.gather(in.view(), all.view(), 1);
    out.expect_values(world.rank() == 0 ? std::vector<float>{2, 4} : std::vector<float>{40, 41}, "reduce");
    all.expect_values(world.rank() == 1 ? std::vector<float>{1, 2, 1, 2} : std::vector<float>{50, 51, 52, 53}, "gather");
  });
}

TEST_CASE("a view with gaps and no memory is refused") {
  test::run_ranks(1, [](Group& world) {
    const TensorView null(nullptr, DType::f32, Shape{3}, std::array<std::int64_t, 1>{2});
    const std::string text = test::failure_of<InvalidArgument>([&] { world.all_sum(null); });
    expect(text.find("null") != std::string::npos, text);
  });
}
