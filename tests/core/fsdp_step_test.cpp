#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <ringlet/optimizers.hpp>

#include "core/gradients/averager.hpp"
#include "core/sharding/fsdp_step.hpp"
#include "tests/core/operation.hpp"
#include "tests/core/procedures.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

/// Parameters that are pulled towards targets, which differ from rank to rank.
class Model {
 public:
  explicit Model(const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes) {
      const std::string name = "p" + std::to_string(tensors_.size() / 2);
      for (Tree* tree : {&parameters_, &gradients_}) {
        tensors_.emplace_back(DType::f32, shape);
        tree->add(name, tensors_.back());
      }
    }
    for (const auto& [name, values] : parameters_)
      for (std::size_t i = 0; i < values.count(); ++i) numbers(values)[i] = std::sin(static_cast<float>(i + name.size()));
  }

  void compute_gradients(int rank, int step) {
    for (std::size_t t = 0; t < parameters_.size(); ++t) {
      const float* values = numbers(parameters_[t].values);
      for (std::size_t i = 0; i < parameters_[t].values.count(); ++i)
        numbers(gradients_[t].values)[i] =
            values[i] - std::cos(static_cast<float>(5 * t + i) + 0.3f * static_cast<float>(rank) + 0.1f * static_cast<float>(step));
    }
  }
  const Tree& parameters() const { return parameters_; }
  const Tree& gradients() const { return gradients_; }
  std::vector<float> flat() const {
    std::vector<float> all;
    for (const auto& [name, values] : parameters_) all.insert(all.end(), numbers(values), numbers(values) + values.count());
    return all;
  }

 private:
  static float* numbers(const TensorView& values) { return reinterpret_cast<float*>(values.data()); }

  std::deque<Tensor> tensors_;
  Tree parameters_, gradients_;
};

float distance(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

std::unique_ptr<Optimizer> make_optimizer(std::uint64_t kind) {
  if (kind == 0) return std::make_unique<SGD>(0.05, SGDOptions{.momentum = 0.9});
  if (kind == 1) return std::make_unique<AdamW>(0.01, AdamWOptions{.bias_correction = true});
  return std::make_unique<Adagrad>(0.05);
}

FsdpStep::Apply applying(Optimizer& optimizer) {
  return [&optimizer](const Tree& gradients, const Tree& parameters) {
    optimizer.apply_gradients(gradients, parameters);
    return Status();
  };
}

/// Returns a pointer that does not own the procedure, since the step outlives its run.
std::shared_ptr<Procedure> borrowed(Procedure& procedure) {
  return {&procedure, [](Procedure*) {}};
}

/// One rank's part in a training by FSDP, and in the same training by plain data parallelism.
struct Trainee {
  Trainee(const std::vector<Shape>& shapes, std::uint64_t kind, GroupEngine& group, Agreements& agreements, const WorldOptions* replicas,
          const FsdpSettings& settings)
      : sharded(shapes),
        plain(shapes),
        optimizer(make_optimizer(kind)),
        plain_optimizer(make_optimizer(kind)),
        step(group, agreements, replicas, settings) {}

  Model sharded, plain;
  std::unique_ptr<Optimizer> optimizer, plain_optimizer;
  FsdpStep step;
};

std::vector<Shape> random_shapes(SimRandom& random) {
  std::vector<Shape> shapes{Shape{}};
  for (std::uint64_t i = 0, count = 1 + random.below(8); i < count; ++i)
    shapes.push_back(random.chance(500)
                         ? Shape{static_cast<std::int64_t>(random.below(40))}
                         : Shape{static_cast<std::int64_t>(random.below(20)), static_cast<std::int64_t>(1 + random.below(9))});
  return shapes;
}

FsdpSettings random_settings(SimRandom& random, int ranks) {
  FsdpSettings settings;
  settings.communication_size = pick<std::int64_t>(random, {0, 100, 600, 32 << 20});
  if (random.chance(500)) settings.max_norm = 0.5;
  if (random.chance(200)) settings.reduce_dtype = DType::f64;
  if (random.chance(300))
    for (int rank = 0; rank < ranks; ++rank) settings.shard_weights.push_back(rank == 0 ? 1 : static_cast<double>(random.below(3)));
  return settings;
}

/// Takes `steps` steps of both trainings and compares them. `replicas`: by rank, the group of the ranks with the same shard; empty: none.
void train(ProcedureWorld& world, const std::vector<GroupEngine*>& shards, const std::vector<GroupEngine*>& replicas, SimRandom& random,
           int steps) {
  const std::vector<Shape> shapes = random_shapes(random);
  const std::uint64_t kind = random.below(3);
  const FsdpSettings settings = random_settings(random, shards[0]->options().size);
  REQUIRE(FsdpStep::check(settings, shards[0]->options().size).ok());
  std::deque<Trainee> trainees;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    trainees.emplace_back(shapes, kind, *shards[r], world.agreements(rank), replicas.empty() ? nullptr : &replicas[r]->options(), settings);
  }
  std::deque<Agreements> of_world(trainees.size());
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      Trainee& trainee = trainees[r];
      trainee.sharded.compute_gradients(rank, step);
      trainee.step.begin(trainee.sharded.gradients(), trainee.sharded.parameters(), applying(*trainee.optimizer));
      std::vector<GroupEngine*> groups{shards[r]};
      if (!replicas.empty()) groups.push_back(replicas[r]);
      world.start(rank, borrowed(trainee.step), std::move(groups), 3);
    }
    REQUIRE(world.run_until_ended());
    REQUIRE(world.failure() == "");
    for (int rank = 0; rank < world.size(); ++rank) trainees[static_cast<std::size_t>(rank)].plain.compute_gradients(rank, step);
    REQUIRE(world.run([&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return std::make_shared<TreeAverage>(world.engine(rank), of_world[r], trainees[r].plain.gradients(), AverageOptions{});
    }));
    REQUIRE(world.failure() == "");
    for (Trainee& trainee : trainees) {
      if (settings.max_norm) {
        const double norm = clip_grad_norm(trainee.plain.gradients(), *settings.max_norm);
        REQUIRE(trainee.step.norm().has_value());
        CHECK(std::abs(*trainee.step.norm() - norm) < 1e-4 * (1 + norm));
      }
      trainee.plain_optimizer->apply_gradients(trainee.plain.gradients(), trainee.plain.parameters());
    }
  }
  std::size_t state_bytes = 0;
  for (Trainee& trainee : trainees) {
    CHECK(trainee.sharded.flat() == trainees[0].sharded.flat());
    CHECK(distance(trainee.sharded.flat(), trainee.plain.flat()) < 2e-5f);
    state_bytes += trainee.optimizer->state_bytes();
  }
  const std::size_t copies = trainees.size() / static_cast<std::size_t>(shards[0]->options().size);
  CHECK(state_bytes == copies * trainees[0].plain_optimizer->state_bytes());
}

}  // namespace

TEST_CASE("FSDP from completions follows plain data parallelism; the state is made for the shards alone") {
  const auto seed = GENERATE(from_range(seeds(60)));
  CAPTURE(seed);
  SimRandom random(seed * 13 + 1);
  GroupSetup setup;
  setup.size = static_cast<int>(1 + random.below(5));
  setup.seed = seed;
  if (random.chance(500)) setup.paths = rough_paths();
  setup.world.limits = {random.below(2) * 200, 1000 + random.below(2) * 20'000};
  ProcedureWorld world(setup);
  train(world, world.group().groups(), {}, random, 8);
  if (world.size() > 1) world.group().close_cleanly();
}

TEST_CASE("shards with replicas: gradients are averaged over both groups") {
  const auto seed = GENERATE(from_range(seeds(20)));
  CAPTURE(seed);
  SimRandom random(seed * 17 + 2);
  ProcedureWorld world({.size = 6, .seed = seed});
  const auto shards = world.group().split(world.group().groups(), {0, 0, 0, 1, 1, 1});
  const auto replicas = world.group().split(world.group().groups(), {0, 1, 2, 0, 1, 2});
  train(world, shards, replicas, random, 6);
}

TEST_CASE("an FSDP step that is refused leaves nothing behind: the next one works") {
  ProcedureWorld world({.size = 2, .seed = 5});
  std::vector<float> gradient(6, 1.f), other(6, 1.f);
  std::vector<std::vector<float>> parameters(2, std::vector<float>(6));
  std::vector<std::int32_t> whole(6);
  SGD optimizer(1.0);
  std::deque<FsdpStep> steps;
  for (int rank = 0; rank < 2; ++rank) steps.emplace_back(world.engine(rank), world.agreements(rank), nullptr, FsdpSettings{});
  const auto take = [&](const std::function<Tree(int)>& gradients, const FsdpStep::Apply& apply) {
    for (int rank = 0; rank < 2; ++rank) {
      auto& step = steps[static_cast<std::size_t>(rank)];
      step.begin(gradients(rank), Tree{{"w", parameters[static_cast<std::size_t>(rank)]}}, apply);
      world.start(rank, borrowed(step), {&world.engine(rank)});
    }
    REQUIRE(world.run_until_ended());
    CHECK(world.status(0)->text() == world.status(1)->text());
    return world.failure();
  };
  const auto fail = [](const Tree&, const Tree&) { return Status(Errc::invalid_argument, "no"); };
  CHECK_THAT(take([&](int) { return Tree{{"w", whole}}; }, applying(optimizer)), Contains("gradients must be floating"));
  CHECK_THAT(take([&](int) { return Tree{{"v", gradient}}; }, applying(optimizer)), Contains("do not fit: tensor 0 is 'v'"));
  CHECK(take([&](int) { return Tree{{"w", gradient}}; }, fail) == "no");
  CHECK(take([&](int) { return Tree{{"w", gradient}}; }, applying(optimizer)) == "");
  for (const auto& values : parameters) CHECK(values == std::vector<float>(6, -1.f));
  CHECK(steps[0].layout()->count(0) == 3);
  CHECK(FsdpStep::check({.max_norm = -1.0}, 2).text() == "clip_grad_norm: max_norm is -1; it must not be negative");
  CHECK_THAT(FsdpStep::check({.reduce_dtype = DType::complex64}, 2).text(), Contains("reduce_dtype is complex64"));
  CHECK_THAT(FsdpStep::check({.shard_weights = {1, 2, 3}}, 2).text(), Contains("3 shard weights for 2 ranks"));
  world.group().close_cleanly();
}
