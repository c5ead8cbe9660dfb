// What train_text writes beside its report.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "text_training.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("a rank that is killed, rank 0 too, leaves no trace in the losses of those who go on") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const auto arguments = [&](const std::string& log) {
    return std::vector<std::string>{"launch",   "--elastic", "-n",      "3",    "--no-prefix",  "--", TRAIN_TEXT,  "--data", text,
                                    "--layers", "1",         "--width", "32",   "--heads",      "2",  "--context", "32",     "--batch",
                                    "8",        "--json",    "--steps", "2000", "--log-losses", log};
  };
  const std::string log = directory.path() + "/undisturbed";
  REQUIRE(run_command(arguments(log)).exit_code == 0);
  const auto expected = read_losses(log);
  REQUIRE(expected.size() == 2000);
  for (const int victim : {0, 1})
    for (const std::string mode : {"", "--fsdp", "--fully-shard"}) {
      const std::string its_log = directory.path() + "/without-" + std::to_string(victim) + mode;
      std::vector<std::string> its_arguments = arguments(its_log);
      if (!mode.empty()) its_arguments.push_back(mode);
      CommandProcess process(its_arguments);
      process.wait_for_stderr("step 1/2000");
      ::kill(process_of_rank(process.pid(), victim), SIGKILL);
      const Outcome outcome = process.finish();
      CAPTURE(victim, mode, outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
      CHECK_THAT(outcome.err, Contains("2 of 3 ranks go on"));
      CHECK_THAT(outcome.err, Contains(fmt::format("went on to the end without rank {} (killed by SIGKILL)", victim)));
      CHECK(last_line(outcome.out).at("ranks") == 2);
      std::istringstream lines(read_file(its_log));
      std::map<int, double> losses;
      double loss = 0;
      for (int step = 0; lines >> step >> loss;) CHECK(losses.emplace(step, loss).second);
      CHECK(losses.size() == expected.size());
      // Sums in another order round otherwise, and training makes more and more of that.
      for (const auto& [step, its_loss] : losses)
        if (step < 400) CHECK(its_loss == Approx(expected[static_cast<std::size_t>(step)]).epsilon(1e-3));
    }
}

TEST_CASE("the losses of ranks that train alone have no gap where rank 0 is killed between two averages") {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/losses";
  std::vector<std::string> arguments{"launch", "--elastic", "-n", "3", "--no-prefix", "--", TRAIN_TEXT, "--data", write_text(directory)};
  for (const char* word : {"--layers", "1", "--width", "32", "--heads", "2", "--context", "32", "--batch", "9", "--json"})
    arguments.emplace_back(word);
  arguments.insert(arguments.end(), {"--steps", "3000", "--inner-steps", "50", "--log-losses", log});
  CommandProcess process(arguments);
  process.wait_for_stderr("step 1/3000");
  ::kill(process_of_rank(process.pid(), 0), SIGKILL);
  const Outcome outcome = process.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("2 of 3 ranks go on"));
  std::istringstream lines(read_file(log));
  int expected = 0;
  double loss = 0;
  for (int step = 0; lines >> step >> loss; ++expected) REQUIRE(step == expected);
  CHECK(expected == 3000);
}

TEST_CASE("a rank that is started again shares its file of hashes with no other, and keeps what it had") {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/hashes";
  CommandProcess process(training_of(3, write_text(directory),
                                     {"--steps", "2000", "--batch", "6", "--check-every", "10", "--json", "--log-hashes", log},
                                     {"--elastic", "3:3"}));  // the others wait for it
  process.wait_for_stderr("step 1/2000");
  wait_for_condition([&] { return read_file(log + ".0").size() > 100; });
  ::kill(process_of_rank(process.pid(), 0), SIGKILL);
  const Outcome outcome = process.finish();
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(last_line(outcome.out).at("ranks") == 3);
  for (const int number : {0, 1, 2}) {
    std::istringstream lines(read_file(fmt::format("{}.{}", log, number)));
    std::vector<int> steps;
    std::string hash;
    for (int step = 0; lines >> step >> hash;) steps.push_back(step);
    CAPTURE(number, steps);
    REQUIRE_FALSE(steps.empty());
    CHECK(steps.front() == 10);
    CHECK(steps.back() == 2000);
    CHECK(std::is_sorted(steps.begin(), steps.end()));
    // The killed process may have been about to write one.
    CHECK(std::set(steps.begin(), steps.end()).size() >= (number == 0 ? 199 : 200));
  }
}

TEST_CASE("a log that cannot be written costs neither the training nor its report, but the exit code") {
  const std::vector<std::string> mode = GENERATE(std::vector<std::string>(), std::vector<std::string>{"--inner-steps", "5"});
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const auto check = [&](const std::string& option, const std::string& log, const std::string& file) {
    std::vector<std::string> more{"--steps", "20", "--batch", "9", "--json", option, log};
    more.insert(more.end(), mode.begin(), mode.end());
    const Outcome outcome = train(2, text, more);
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 1);
    const std::string what = "cannot write to " + file + " (" + option + "): No space left on device; training goes on";
    CHECK_THAT(outcome.err, Contains(what));
    CHECK(outcome.err.find(what) == outcome.err.rfind(what));
    CHECK(last_line(outcome.out).at("steps") == 20);
  };
  check("--log-losses", "/dev/full", "/dev/full");
  // Rank 0 reports though rank 1 is at its end earlier, and with an error.
  std::filesystem::create_symlink("/dev/full", directory.path() + "/hashes.1");
  check("--log-hashes", directory.path() + "/hashes", directory.path() + "/hashes.1");
}

TEST_CASE("each rank logs the hashes of its own parameters") {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/hashes";
  const Outcome outcome =
      train(2, write_text(directory), {"--steps", "5", "--batch", "4", "--check-every", "2", "--json", "--log-hashes", log});
  REQUIRE(outcome.exit_code == 0);
  std::istringstream lines(read_file(log + ".0"));
  std::vector<int> steps;
  std::string hash;
  for (int step; lines >> step >> hash;) {
    steps.push_back(step);
    CHECK(hash.size() == 16);
  }
  CHECK(steps == std::vector{2, 4, 5});
  CHECK(last_line(outcome.out).at("parameter_hash") == hash);
  CHECK(read_file(log + ".1") == read_file(log + ".0"));
}
