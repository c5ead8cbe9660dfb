#include <batches.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <model.hpp>
#include <string_view>
#include <training.hpp>

using namespace train_text;

namespace {

constexpr ModelShape kShape{.layers = 2, .width = 16, .heads = 2, .context = 12};
constexpr std::uint64_t kSeed = 21;

Corpus small_corpus() {
  constexpr std::string_view kVerse = "one two three four, who is at the door; five six seven eight, open up the gate. ";
  Bytes text;
  for (int i = 0; i < 30; ++i) text.insert(text.end(), kVerse.begin(), kVerse.end());
  return {std::move(text), kShape.context};
}

// One rank of a group that lives in this test alone.
struct Replica {
  explicit Replica(int steps) : model(kShape, kSeed), optimizer(make_optimizer(learning_rate_schedule(steps, 3e-3))) {}
  void apply_gradients() {
    const ringlet::Tree gradients = tree_of(model.parameter_ranges(), model.gradients());
    ringlet::clip_grad_norm(gradients, kMaxNorm);
    optimizer.apply_gradients(gradients, tree_of(model.parameter_ranges(), model.parameters()));
  }
  Transformer<float> model;
  ringlet::MultiOptimizer optimizer;
};

// The weighted mean of the replicas' gradients, given to each of them: what the group does over the network.
void average_gradients(std::vector<std::unique_ptr<Replica>>& replicas, const std::vector<int>& weights, int total) {
  for (std::size_t i = 0; i < replicas[0]->model.gradients().size(); ++i) {
    float sum = 0;
    for (std::size_t r = 0; r < replicas.size(); ++r) sum += static_cast<float>(weights[r]) * replicas[r]->model.gradients()[i];
    for (auto& replica : replicas) replica->model.gradients()[i] = sum / static_cast<float>(total);
  }
}

// The group's mean loss of each step.
std::vector<double> train(const Corpus& corpus, int ranks, int batch_size, int steps) {
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int rank = 0; rank < ranks; ++rank) replicas.push_back(std::make_unique<Replica>(steps));
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    double loss = 0;
    std::vector<int> weights;
    for (int rank = 0; rank < ranks; ++rank) {
      Replica& replica = *replicas[static_cast<std::size_t>(rank)];
      const Slice slice = slice_of(batch_size, rank, ranks);
      const Batch batch = training_batch(corpus, kShape.context, kSeed, static_cast<std::uint64_t>(step), slice);
      loss += replica.model.forward(batch) * slice.count / batch_size;
      replica.model.backward(batch);
      weights.push_back(slice.count);
    }
    average_gradients(replicas, weights, batch_size);
    for (auto& replica : replicas) replica->apply_gradients();
    losses.push_back(loss);
  }
  for (auto& replica : replicas) CHECK(std::ranges::equal(replica->model.parameters(), replicas[0]->model.parameters()));
  return losses;
}

}  // namespace

TEST_CASE("the loss falls on a small text") {
  const Corpus corpus = small_corpus();
  const std::vector<double> losses = train(corpus, 1, 8, 500);
  CHECK(losses.front() > 4);
  CHECK(losses.back() < 0.6 * unigram_entropy(corpus.text()));
}

TEST_CASE("several ranks that share the batch follow one rank that has it all, evenly split or not") {
  const Corpus corpus = small_corpus();
  const int batch_size = GENERATE(7, 12);
  const std::vector<double> alone = train(corpus, 1, batch_size, 20);
  const int ranks = GENERATE(2, 3, 4);
  CAPTURE(batch_size, ranks);
  const std::vector<double> together = train(corpus, ranks, batch_size, 20);
  for (std::size_t step = 0; step < alone.size(); ++step) CHECK(together[step] == Approx(alone[step]).epsilon(2e-4));
}
