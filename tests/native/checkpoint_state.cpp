#include "tests/native/checkpoint_state.hpp"

#include <cstring>
#include <mutex>

#include "tests/native/ranks.hpp"

namespace ringlet::test {

namespace {

bool same_bytes(ConstTensorView values, ConstTensorView wanted) {
  if (values.dtype() != wanted.dtype() || !(values.shape() == wanted.shape())) return false;
  const Tensor a = Tensor::copy_of(values);
  const Tensor b = Tensor::copy_of(wanted);
  return std::memcmp(a.view().data(), b.view().data(), a.bytes()) == 0;
}

TensorView transposed(Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const std::int64_t strides[] = {1, shape[1]};
  return {tensor.view().data(), tensor.dtype(), Shape{shape[1], shape[0]}, strides};
}

}  // namespace

TrainingState::TrainingState(int rank, int ranks, unsigned seed, const std::vector<double>& weights, std::int64_t large_rows)
    : rank_(rank) {
  for (const auto& facts : detail::kDTypes) replicated_.push_back({"layers." + std::string(facts.name), facts.dtype, Shape{7, 3}});
  replicated_.push_back({"scale", DType::f64, Shape{}});
  replicated_.push_back({"none", DType::f32, Shape{0, 4}});
  replicated_.push_back({"thin", DType::f32, Shape{3, 0}});
  replicated_.push_back({"one_row", DType::i16, Shape{1, 5}});
  replicated_.push_back({"turned", DType::f32, Shape{4, 6}});
  sharded_ = {{"large", DType::f32, Shape{large_rows, 5}},
              {"few.rows", DType::bf16, Shape{2, 3, 2}},
              {"bias", DType::f64, Shape{9}},
              {"scalar", DType::f32, Shape{}},
              {"empty", DType::u8, Shape{0, 2}}};
  for (const Whole& whole : replicated_) {
    const bool turned = whole.name == "turned";
    memory_.push_back(turned ? Tensor(whole.dtype, Shape{whole.shape[1], whole.shape[0]}) : expected(whole, seed));
    TensorView view = turned ? transposed(memory_.back()) : memory_.back().view();
    if (turned) copy(expected(whole, seed), view);
    parameters_.add(whole.name, view);
  }
  Tree full;
  for (const Whole& whole : sharded_) full.add(whole.name, TensorView(nullptr, whole.dtype, whole.shape));
  layout_ = std::make_unique<ShardLayout>(full, ranks, weights);
  for (const Whole& whole : sharded_) {
    memory_.push_back(shard_of(whole, seed));
    shards_.add(whole.name, memory_.back());
  }
  for (const char* slot : {"m", "v"})
    for (const Whole& whole : sharded_) {
      memory_.push_back(shard_of({whole.name + "." + slot, DType::f32, whole.shape}, seed));
      slots_.add(whole.name + "." + slot, memory_.back());
    }
}

Tensor TrainingState::expected(const Whole& whole, unsigned seed) const {
  Tensor tensor(whole.dtype, whole.shape);
  std::uint32_t state = seed * 2654435761u;
  for (const char c : whole.name) state = (state ^ static_cast<unsigned char>(c)) * 16777619u;
  std::byte* const data = tensor.view().data();
  const std::size_t bytes = seed == 0 ? 0 : tensor.bytes();
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
  return tensor;
}

Tensor TrainingState::shard_of(const Whole& whole, unsigned seed) const {
  Tensor full = expected(whole, seed);
  const auto dot = whole.name.rfind('.');
  const bool is_slot = dot != std::string::npos && dot + 2 == whole.name.size();
  const std::string laid_out = is_slot ? whole.name.substr(0, dot) : whole.name;
  return Tensor::copy_of(layout_->shard(Tree{{laid_out, full}}, rank_)[0].values);
}

Checkpoint TrainingState::checkpoint() {
  Checkpoint checkpoint;
  checkpoint.add("parameters", parameters_).add_sharded("shards", shards_, *layout_).add_slots("optimizer", slots_, *layout_);
  return checkpoint;
}

std::string TrainingState::wrong(unsigned seed) const {
  for (const Whole& whole : replicated_)
    if (!same_bytes(parameters_.at(whole.name), expected(whole, seed))) return whole.name;
  for (const Whole& whole : sharded_) {
    if (!same_bytes(shards_.at(whole.name), shard_of(whole, seed))) return "shard " + whole.name;
    for (const std::string slot : {".m", ".v"})
      if (!same_bytes(slots_.at(whole.name + slot), shard_of({whole.name + slot, DType::f32, whole.shape}, seed))) return whole.name + slot;
  }
  return {};
}

void save_state(int ranks, const std::function<std::filesystem::path(int)>& directory_of, std::uint64_t step, unsigned seed,
                const std::vector<double>& weights, int keep) {
  run_ranks(ranks, [&](Group& world) {
    TrainingState state(world.rank(), ranks, seed, weights);
    Checkpoint checkpoint = state.checkpoint();
    checkpoint.set("seed", seed).set("rate", 0.1 * seed).set("name", "run").set("offset", -5);
    const SaveReport report = save_checkpoint(world, directory_of(world.rank()), checkpoint, {.step = step, .keep = keep});
    expect(std::filesystem::is_directory(report.path) && report.bytes > 0 && report.total_bytes >= report.bytes, "report");
  });
}

std::optional<std::uint64_t> load_state(int ranks, const std::function<std::filesystem::path(int)>& directory_of, unsigned seed,
                                        const std::vector<double>& weights, std::optional<std::uint64_t> step) {
  std::vector<std::optional<std::uint64_t>> steps(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Group& world) {
    TrainingState state(world.rank(), ranks, 0, weights);
    Checkpoint checkpoint = state.checkpoint();
    checkpoint.set("seed", 77);
    const auto loaded = load_checkpoint(world, directory_of(world.rank()), checkpoint, {.step = step});
    steps[static_cast<std::size_t>(world.rank())] = loaded;
    if (!loaded) return;
    const std::string wrong = state.wrong(seed);
    expect(wrong.empty(), "wrong after loading: " + wrong);
    expect(checkpoint.get<std::uint64_t>("seed") == seed && checkpoint.get<double>("rate") == 0.1 * seed &&
               checkpoint.get<std::string>("name") == "run" && checkpoint.get<std::int64_t>("offset") == -5,
           "values");
  });
  for (const auto& loaded : steps) expect(loaded == steps[0], "ranks loaded different steps");
  return steps[0];
}

std::optional<std::uint64_t> latest_of(int ranks, const std::function<std::filesystem::path(int)>& directory_of) {
  std::vector<std::optional<std::uint64_t>> steps(static_cast<std::size_t>(ranks));
  run_ranks(ranks,
            [&](Group& world) { steps[static_cast<std::size_t>(world.rank())] = latest_checkpoint(world, directory_of(world.rank())); });
  for (const auto& step : steps) expect(step == steps[0], "ranks see different steps");
  return steps[0];
}

std::string load_error(int ranks, const std::function<std::filesystem::path(int)>& directory_of, std::optional<std::uint64_t> step) {
  std::mutex mutex;
  std::vector<std::string> errors;
  run_ranks(ranks, [&](Group& world) {
    TrainingState state(world.rank(), ranks, 9);
    Checkpoint checkpoint = state.checkpoint();
    try {
      load_checkpoint(world, directory_of(world.rank()), checkpoint, {.step = step});
    } catch (const IoError& error) {
      const std::lock_guard lock(mutex);
      errors.push_back(error.what());
    }
    expect(state.wrong(9).empty(), "a failed load has changed " + state.wrong(9));
    world.barrier();
  });
  expect(errors.size() == static_cast<std::size_t>(ranks), "not every rank was told");
  for (const auto& error : errors) expect(error == errors[0], "ranks were told differently: " + error + " / " + errors[0]);
  return errors[0];
}

}  // namespace ringlet::test
