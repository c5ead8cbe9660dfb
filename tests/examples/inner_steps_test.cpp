#include <catch2/catch.hpp>
#include <inner_steps.hpp>
#include <training.hpp>

#include "small_text.hpp"

using namespace train_text;

namespace {

class Alone final : public Replica {
 public:
  using Replica::Replica;
};

}  // namespace

TEST_CASE("a rank whose first step is a late one has the group's learning rate, and corrects its moments by its own steps") {
  Options options = small_options();
  options.inner_steps = 10;
  const Corpus corpus = small_corpus();
  Transformer<float> model(options.shape, options.seed);
  Alone replica(options, model);
  InnerSteps steps(options, corpus, model, replica);
  const ringlet::Schedule learning_rate = learning_rate_schedule(options.steps, options.learning_rate);
  std::uint64_t own = 0;
  // It leaves out two of them, too.
  for (const std::uint64_t number : {30, 31, 34, 35}) {
    steps.begin(number, 1, 3);
    REQUIRE(steps.work(1 << 20));
    CHECK(replica.optimizer().step() == ++own);
    CHECK(replica.optimizer().learning_rate() == learning_rate(number));
  }
  CHECK(steps.done() == 36);
}
