// A native rank of a world with guests. ranks_test.mjs starts it, and guest.mjs calls the same operations. It prints one line for each: its
// name, and a hash of the bytes that every rank has then.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <ringlet/ringlet.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace ringlet;

namespace {

/// The same sequence of numbers as in guest.mjs.
class Numbers {
 public:
  Numbers(int rank, std::uint32_t stage) : state_(0x9e3779b9u * (static_cast<std::uint32_t>(rank) * 1'000 + stage + 1) | 1) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }

 private:
  std::uint32_t state_;
};

/// Returns a tensor of any bits; booleans are 0 or 1.
Tensor make_bits(DType dtype, std::size_t count, int rank, std::uint32_t stage) {
  Tensor tensor(dtype, Shape{static_cast<std::int64_t>(count)});
  Numbers numbers(rank, stage);
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    const auto byte = static_cast<std::uint8_t>(numbers.next() >> 8);
    tensor.view().data()[i] = static_cast<std::byte>(dtype == DType::boolean ? byte & 1 : byte);
  }
  return tensor;
}

/// Returns a tensor of numbers from -1 to 1.
Tensor make_values(std::size_t count, int rank, std::uint32_t stage) {
  Tensor tensor(DType::f32, Shape{static_cast<std::int64_t>(count)});
  Numbers numbers(rank, stage);
  for (float& value : tensor.values<float>()) value = static_cast<float>(static_cast<std::int32_t>(numbers.next())) / 2147483648.0f;
  return tensor;
}

void print(const std::string& name, ConstTensorView values) {
  std::uint32_t hash = 0x811c9dc5;
  for (std::size_t i = 0; i < values.bytes(); ++i) hash = (hash ^ std::to_integer<std::uint32_t>(values.data()[i])) * 0x01000193u;
  std::printf("%s %08x\n", name.c_str(), hash);
}

void reduce_everything(Group& group, std::uint32_t& stage) {
  for (std::size_t d = 0; d < kDTypeCount; ++d)
    for (std::size_t op = 0; op < kReduceOpCount; ++op)
      for (std::size_t count : {1u, 1'000u, 40'000u}) {
        const auto dtype = static_cast<DType>(d);
        if (!can_reduce(dtype, static_cast<ReduceOp>(op))) continue;
        Tensor values = make_bits(dtype, count, group.rank(), ++stage);
        group.all_reduce(static_cast<ReduceOp>(op), values, values);
        print(std::string(name_of(dtype)) + " " + std::string(name_of(static_cast<ReduceOp>(op))) + " " + std::to_string(count), values);
      }
}

/// Scatters rows that do not divide, also with counts of which one is 0, and then gathers all parts.
void scatter_everything(Group& group, std::uint32_t& stage) {
  const auto size = static_cast<std::int64_t>(group.size());
  for (std::size_t d = 0; d < kDTypeCount; ++d)
    for (std::size_t op = 0; op < kReduceOpCount; ++op)
      for (const std::int64_t most : {std::int64_t{3}, std::int64_t{9'000}}) {
        const auto dtype = static_cast<DType>(d);
        if (!can_reduce(dtype, static_cast<ReduceOp>(op))) continue;
        std::vector<std::int64_t> counts;
        for (std::int64_t rank = 0; rank < size; ++rank) counts.push_back(rank == 0 ? 0 : most + rank);
        const std::int64_t rows = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        const std::string name = "reduce_scatter " + std::string(name_of(dtype)) + " " + std::string(name_of(static_cast<ReduceOp>(op)));
        Tensor values = make_bits(dtype, static_cast<std::size_t>(rows), group.rank(), ++stage), all(dtype, Shape{rows});
        Tensor part(dtype, Shape{counts[static_cast<std::size_t>(group.rank())]});
        group.reduce_scatter_v(static_cast<ReduceOp>(op), values, part, counts);
        group.all_gather_v(part, all, counts);
        print(name + " with counts", all);
        for (std::int64_t rank = 0; rank < size; ++rank)
          counts[static_cast<std::size_t>(rank)] = rows / size + (rank < rows % size ? 1 : 0);
        Tensor even(dtype, Shape{counts[static_cast<std::size_t>(group.rank())]});
        group.reduce_scatter(static_cast<ReduceOp>(op), values, even);
        group.all_gather_v(even, all, counts);
        print(name, all);
      }
}

void move_everything(Group& group, std::uint32_t& stage) {
  const auto size = static_cast<std::size_t>(group.size());
  for (std::size_t count : {5u, 60'000u}) {
    Tensor own = make_values(count, group.rank(), ++stage);
    Tensor all(DType::f32, Shape{static_cast<std::int64_t>(count * size)});
    group.all_mean(own, own);
    print("all_mean", own);
    group.reduce_mean(own, own, 0);
    group.broadcast(own, 0);
    print("reduce_mean", own);
    own = make_values(count, group.rank(), ++stage);
    group.all_gather(own, all);
    print("all_gather", all);
    Tensor part(DType::f32, Shape{static_cast<std::int64_t>(count)});
    group.reduce_scatter(ReduceOp::sum, all, part);
    group.all_gather(part, all);
    print("reduce_scatter", all);
    group.mean_scatter(all, part);
    group.all_gather(part, all);
    print("mean_scatter", all);
    group.broadcast(own, group.size() - 1);
    print("broadcast", own);
    Tensor swapped(DType::f32, all.shape());
    group.all_to_all(all, swapped);
    group.all_to_all(swapped, all);
    print("all_to_all", all);
    group.gather(own, all, 0);
    group.scatter(all, own, 0);
    print("gather and scatter", own);
    const int next = (group.rank() + 1) % group.size(), previous = (group.rank() + group.size() - 1) % group.size();
    Work sending = group.send_async(own, next);
    group.recv(part, previous);
    sending.wait();
    print("send and recv", part);
  }
  const auto half = group.split(group.rank() % 2);
  Tensor number(DType::i32, Shape{1});
  number.values<std::int32_t>()[0] = half->size();
  group.broadcast(number, 0);
  print("split", number);
  group.barrier();
}

void train(Group& group, std::uint32_t& stage) {
  Tensor a = make_values(3'001, 0, ++stage), b = make_values(17, 0, ++stage);
  const Tree parameters{{"layers.0.weight", a}, {"layers.0.bias", b}};
  AdamW optimizer(0.01);
  std::vector<std::pair<BlockFormat, FsdpUpdater>> in_blocks;
  for (const auto& facts : detail::kBlockFormats) {
    const Wire wire = Wire::in_blocks(facts.format, {.feedback = true, .least_elements = 0});
    in_blocks.emplace_back(facts.format, FsdpUpdater(group, {.max_norm = 1.0, .reduce_dtype = wire}));
  }
  for (int step = 0; step < 3; ++step) {
    Tensor da = make_values(3'001, group.rank(), ++stage), db = make_values(17, group.rank(), ++stage);
    const Tree gradients{{"layers.0.weight", da}, {"layers.0.bias", db}};
    AverageOptions weighted;
    weighted.weight = group.rank() + 1;
    average_gradients(group, gradients, weighted);
    print("average_gradients", da);
    FsdpOptions options;
    options.max_norm = 1.0;
    fsdp_apply_gradients(group, gradients, parameters, optimizer, options);
    print("fsdp_apply_gradients", a);
    for (auto& [format, updater] : in_blocks) {
      updater.apply_gradients(gradients, parameters, [&](const Tree& g, const Tree& p) { optimizer.apply_gradients(g, p); });
      print("fsdp_apply_gradients in " + std::string(name_of(format)), a);
    }
  }
}

/// Exchanges messages that rank 1 measures, again and again: first from it, then to it.
void exchange(Group& group, std::size_t bytes, int messages, int turns) {
  Tensor values(DType::u8, Shape{static_cast<std::int64_t>(bytes)});
  std::vector<Work> works;
  for (int turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < messages; ++i) works.push_back(group.recv_async(values, 1));
    works.clear();  // waits for the messages
    group.barrier();
    for (int i = 0; i < messages; ++i) works.push_back(group.send_async(values, 1));
    works.clear();
    group.barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    InitOptions options;
    options.strict = true;
    Group group = init(options);
    if (argc == 5 && std::string(argv[1]) == "exchange") {
      exchange(group, std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), std::atoi(argv[4]));
      return 0;
    }
    std::uint32_t stage = 0;
    const bool only_trains = argc == 2 && std::string(argv[1]) == "train";
    if (!only_trains) {
      reduce_everything(group, stage);
      scatter_everything(group, stage);
      move_everything(group, stage);
    }
    train(group, stage);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "native_rank: %s\n", error.what());
    return 1;
  }
}
