#include <fmt/format.h>
#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "text_training.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

// 10 sequences do not divide by 3 or 4, so this also tests the weighted average.
TEST_CASE("N ranks on a batch split N ways follow one rank on the whole batch") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const auto losses_of = [&](int ranks) {
    const std::string log = directory.path() + "/losses-" + std::to_string(ranks);
    const Outcome outcome = train(ranks, text, {"--steps", "50", "--batch", "10", "--log-losses", log});
    CAPTURE(ranks, outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return read_losses(log);
  };
  const auto alone = losses_of(1);
  REQUIRE(alone.size() == 50);
  CHECK(alone.back() < alone.front());
  for (const int ranks : {2, 3, 4}) {
    const auto together = losses_of(ranks);
    REQUIRE(together.size() == alone.size());
    for (std::size_t step = 0; step < alone.size(); ++step) {
      CAPTURE(ranks, step);
      CHECK(together[step] == Approx(alone[step]).epsilon(1e-5));
    }
  }
}

TEST_CASE("a rank that stood still and was left out joins the others again by itself, also one that was rank 0") {
  const auto [stopped, mode] = GENERATE(table<int, std::string>({{0, ""}, {2, "--fsdp"}, {1, "--fully-shard"}}));
  const TemporaryDirectory directory;
  std::vector<std::string> more{"--batch", "8", "--json", "--steps", "2000"};
  if (!mode.empty()) more.push_back(mode);
  CommandProcess process(training_of(3, write_text(directory), more, {"--elastic", "--env", "RINGLET_HEARTBEAT_TIMEOUT_MS=500"}));
  process.wait_for_stderr("step 1/2000");
  const ::pid_t pid = process_of_rank(process.pid(), stopped);
  ::kill(pid, SIGSTOP);
  process.wait_for_stderr("2 of 3 ranks go on");
  ::kill(pid, SIGCONT);
  process.wait_for_stderr("it has joined them again as rank 2 of 3");
  const Outcome outcome = process.finish();
  CAPTURE(stopped, mode, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(last_line(outcome.out).at("ranks") == 3);
}

TEST_CASE("ranks that are all killed start anew, from their newest checkpoint") {
  const std::string mode = GENERATE("", "--fully-shard");
  const TemporaryDirectory directory;
  const std::string saved = directory.path() + "/saved";
  std::vector<std::string> arguments{"launch",    "--elastic",
                                     "2:2",       "--no-prefix",
                                     "--",        TRAIN_TEXT,
                                     "--data",    write_text(directory),
                                     "--layers",  "1",
                                     "--width",   "32",
                                     "--heads",   "2",
                                     "--context", "32",
                                     "--batch",   "8",
                                     "--json",    "--steps",
                                     "600",       "--checkpoint",
                                     saved,       "--checkpoint-every",
                                     "50"};
  if (!mode.empty()) arguments.push_back(mode);
  CommandProcess process(arguments);
  process.wait_for_stderr("step 1/600");
  while (!std::filesystem::exists(saved + "/step-00000050")) process.read_what_came();
  for (const int rank : {1, 0}) ::kill(process_of_rank(process.pid(), rank), SIGKILL);
  const Outcome outcome = process.finish();
  CAPTURE(mode, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("starting anew, as a group of 2 ranks: ranks 0, 1"));
  CHECK_THAT(outcome.err, Contains(" steps are done; "));
  CHECK(last_line(outcome.out).at("steps").get<int>() <= 550);
}

TEST_CASE("ranks that average every ten steps learn, and end with the same parameters") {
  const std::vector<std::string> how = GENERATE(values<std::vector<std::string>>(
      {{}, {"--fragments", "2", "--overlap", "2", "--wire", "int8"}, {"--wire", "int4", "--shares", "measured"}}));
  const TemporaryDirectory directory;
  std::vector<std::string> more{
      "--steps", "300", "--batch", "9", "--json", "--inner-steps", "10", "--log-hashes", directory.path() + "/hashes"};
  more.insert(more.end(), how.begin(), how.end());
  const Outcome outcome = train(3, write_text(directory), more);
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto result = last_line(outcome.out);
  CHECK(result.at("mode") == "outer");
  CHECK(result.at("steps") == 300);
  CHECK(result.at("val_loss_first").get<double>() > result.at("unigram_entropy").get<double>());
  CHECK(result.at("val_loss_last").get<double>() < 0.75 * result.at("unigram_entropy").get<double>());
  for (const char* rank : {".1", ".2"}) CHECK(read_file(directory.path() + "/hashes" + rank) == read_file(directory.path() + "/hashes.0"));
}

TEST_CASE("where slower ranks leave steps out, only what was computed counts as tokens") {
  const TemporaryDirectory directory;
  constexpr int kSteps = 3000, kBatch = 9;
  CommandProcess process(training_of(
      3, write_text(directory),
      {"--batch", std::to_string(kBatch), "--json", "--steps", std::to_string(kSteps), "--inner-steps", "10", "--shares", "measured"}));
  process.wait_for_stderr("step 1/3000");
  const ::pid_t pid = process_of_rank(process.pid(), 2);
  for (int stop = 0; stop < 10; ++stop) {
    ::kill(pid, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    ::kill(pid, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  const Outcome outcome = process.finish();
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, !Contains("tokens/s"));
  const auto result = last_line(outcome.out);
  const double tokens = result.at("tokens_per_s").get<double>() * result.at("seconds").get<double>();
  CHECK(tokens < kSteps * kBatch * kContext - 1);
  CHECK(tokens > kSteps * kBatch * kContext / 3);
  CHECK(std::abs(tokens / kContext - std::round(tokens / kContext)) < 1e-3);
}

TEST_CASE("a rank that is killed between two averages, rank 0 too, is started again and gets the others' parameters") {
  const int victim = GENERATE(0, 2);
  const TemporaryDirectory directory;
  CommandProcess process(training_of(
      3, write_text(directory), {"--batch", "9", "--json", "--steps", "3000", "--inner-steps", "10", "--fragments", "2", "--overlap", "1"},
      {"--elastic", "2:3"}));
  process.wait_for_stderr("step 1/3000");
  ::kill(process_of_rank(process.pid(), victim), SIGKILL);
  const Outcome outcome = process.finish();
  CAPTURE(victim, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("2 of 3 ranks go on") && Contains("3 ranks go on, 1 of them new"));
  CHECK(last_line(outcome.out).at("ranks") == 3);
}

TEST_CASE("a report that cannot be written is a failure") {
  const TemporaryDirectory directory;
  const Outcome outcome = run_script({"-n", "1"}, std::string(TRAIN_TEXT) + " --data " + write_text(directory) +
                                                      " --layers 1 --width 32 --heads 2 --context 32 --steps 1 --json >/dev/full");
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("cannot write to standard output: No space left on device"));
}

TEST_CASE("training goes on where what it says of itself cannot be written") {
  const TemporaryDirectory directory;
  const std::string training = std::string(TRAIN_TEXT) + " --layers 1 --width 32 --heads 2 --context 32 --steps 2 --json --data ";
  const std::string inner_steps = GENERATE(as<std::string>(), "", " --inner-steps 1");
  const Outcome outcome = run_script({"-n", "1"}, training + write_text(directory) + inner_steps + " 2>/dev/full");
  CAPTURE(inner_steps, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("\"ranks\":1"));
  const Outcome refused = run_script({"-n", "1"}, training + "/missing" + inner_steps + " 2>/dev/full");
  CHECK(refused.exit_code == run_script({"-n", "1"}, training + "/missing" + inner_steps).exit_code);
}

TEST_CASE("training learns, and every rank ends with the same parameters") {
  using Case = std::pair<std::string, std::vector<std::string>>;
  const auto [type, mode] = GENERATE(Case{"none", {}}, Case{"f16", {}}, Case{"bf16", {}}, Case{"int8", {}}, Case{"int4", {}},
                                     Case{"int8", {"--fsdp"}}, Case{"int4", {"--fully-shard"}});
  const TemporaryDirectory directory;
  const std::string option = type.starts_with("int") ? "--wire" : "--communication-type";  // two names of one
  std::vector<std::string> options{"--steps", "150", "--batch", "9", "--json", option, type};
  options.insert(options.end(), mode.begin(), mode.end());
  // At the larger width some matrices are large enough for blocks.
  const Outcome outcome = train(3, write_text(directory), options, mode.empty() ? "32" : "72");
  CAPTURE(type, mode, outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const auto result = last_line(outcome.out);
  CHECK(result.at("ranks") == 3);
  CHECK(result.at("steps") == 150);
  CHECK(result.at("tokens_per_s").get<double>() > 0);
  CHECK(result.at("val_loss_first").get<double>() > result.at("unigram_entropy").get<double>());
  CHECK(result.at("val_loss_last").get<double>() < 0.75 * result.at("unigram_entropy").get<double>());
  CHECK(result.at("communication_share").get<double>() >= 0);
  CHECK(result.at("communication_share").get<double>() < 1);
  CHECK_FALSE(result.at("parameter_hash").is_null());
}

TEST_CASE("the same seed gives the same parameters, another seed others") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const auto hash = [&](const char* seed) {
    const Outcome outcome = train(2, text, {"--steps", "5", "--batch", "4", "--json", "--seed", seed});
    REQUIRE(outcome.exit_code == 0);
    return last_line(outcome.out).at("parameter_hash");
  };
  CHECK(hash("7") == hash("7"));
  CHECK(hash("7") != hash("8"));
}

TEST_CASE("modes that shard keep a part on each rank and learn the same") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const auto result_of = [&](std::vector<std::string> mode) {
    mode.insert(mode.end(), {"--steps", "20", "--batch", "10", "--json"});
    const Outcome outcome = train(4, text, mode);
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return last_line(outcome.out);
  };
  const auto plain = result_of({});
  const auto fsdp = result_of({"--fsdp"});
  const auto full = result_of({"--fully-shard"});
  CHECK(plain.at("mode") == "data-parallel");
  CHECK(fsdp.at("mode") == "fsdp");
  CHECK(full.at("mode") == "fully-shard");
  for (const auto& sharded : {fsdp, full})
    CHECK(sharded.at("val_loss_last").get<double>() == Approx(plain.at("val_loss_last").get<double>()).epsilon(2e-5));
  const double parameters = plain.at("parameter_bytes_per_rank").get<double>();
  CHECK(plain.at("optimizer_bytes_per_rank").get<double>() == 2 * parameters);
  CHECK(fsdp.at("parameter_bytes_per_rank").get<double>() == parameters);
  // Each row has two holders, since the group is elastic.
  CHECK(fsdp.at("optimizer_bytes_per_rank").get<double>() == Approx(parameters).epsilon(0.02));
  CHECK(full.at("parameter_bytes_per_rank").get<double>() == Approx(0.5 * parameters).epsilon(0.02));
  CHECK(full.at("optimizer_bytes_per_rank").get<double>() == Approx(parameters).epsilon(0.02));
}

TEST_CASE("a run goes on from its newest checkpoint with another number of ranks, in another mode") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const std::string saved = directory.path() + "/saved";
  const auto losses_of = [&](int ranks, std::vector<std::string> more) {
    const std::string log = directory.path() + "/losses-" + std::to_string(ranks);
    more.insert(more.end(), {"--steps", "20", "--batch", "10", "--checkpoint", saved, "--checkpoint-every", "10", "--log-losses", log});
    const Outcome outcome = train(ranks, text, more);
    CAPTURE(ranks, outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return read_losses(log);
  };
  const auto whole = losses_of(4, {"--fsdp"});
  REQUIRE(whole.size() == 20);
  // Without its last checkpoint the run looks as if it had ended earlier.
  REQUIRE(std::filesystem::remove_all(saved + "/step-00000020") > 0);
  const auto rest = losses_of(3, {"--fully-shard", "--resume"});
  REQUIRE(rest.size() == 10);
  for (std::size_t step = 0; step < rest.size(); ++step) CHECK(rest[step] == Approx(whole[10 + step]).epsilon(2e-5));
}

TEST_CASE("a run that was stopped goes on as one that was not, with what rounding had left of its gradients") {
  const std::string wire = GENERATE("int8", "int4");
  const std::vector<std::string> mode =
      GENERATE(std::vector<std::string>(), std::vector<std::string>{"--fsdp"}, std::vector<std::string>{"--fully-shard"});
  CAPTURE(wire, mode);
  const TemporaryDirectory directory;
  const std::string text = write_text(directory), saved = directory.path() + "/saved";
  const auto hash_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options{"--steps", "12",     "--batch", "4", "--json", "--checkpoint", saved, "--checkpoint-every",
                                     "6",       "--wire", wire};
    options.insert(options.end(), mode.begin(), mode.end());
    options.insert(options.end(), more.begin(), more.end());
    const Outcome outcome = train(2, text, options, "72");
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return last_line(outcome.out).at("parameter_hash");
  };
  const auto whole = hash_of({});
  REQUIRE(std::filesystem::remove_all(saved + "/step-00000012") > 0);
  CHECK(hash_of({"--resume"}) == whole);
}

TEST_CASE("rank 0's options and text count for all, and a rank that was given others says so") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const std::string shared =
      std::string(TRAIN_TEXT) + " --layers 1 --width 32 --heads 2 --context 32 --steps 12 --batch 9 --shares measured --check-every 3";
  // A scheduler's variables tell the rank, too.
  const std::string given = GENERATE("number=$RINGLET_RANK; ", "number=$RANK; unset RINGLET_RANK; ");
  const std::string script = given + "if [ $number = 0 ]; then exec " + shared + " --json --data " + text + "; else exec " + TRAIN_TEXT +
                             " --steps 5 --data " + directory.path() + "/missing; fi";
  const Outcome outcome = run_command({"launch", "-n", "3", "--no-prefix", "--", "sh", "-c", script});
  CAPTURE(given, outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(last_line(outcome.out).at("steps") == 12);
  CHECK_THAT(outcome.err, Contains("rank 0 decides") && Contains("given to rank 2, --steps is 12, not 5"));
}

TEST_CASE("the trainer refuses what it cannot use") {
  const TemporaryDirectory directory;
  const std::string text = write_text(directory);
  const auto refused = [&](int ranks, const std::string& data, std::vector<std::string> more, const std::string& why) {
    const Outcome outcome = train(ranks, data, std::move(more));
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.out + outcome.err, Contains(why));
  };
  refused(1, directory.path() + "/missing", {}, "missing");
  refused(1, text, {"--steps", "0"}, "--steps");
  refused(1, text, {"--batch", "many"}, "many");
  refused(3, text, {"--batch", "2"}, "batch");
  refused(1, text, {"--check-every", "-1"}, "--check-every");
  refused(1, text, {"--shares", "uneven"}, "uneven");
  refused(1, text, {"--fsdp", "--fully-shard"}, "choose one");
  refused(1, text, {"--clip-norm", "-1"}, "--clip-norm");
  refused(1, text, {"--fragments", "2"}, "--fragments requires --inner-steps");
  refused(1, text, {"--inner-steps", "-1"}, "--inner-steps: a whole number from 0 to 1000000000 is possible, not -1");
  refused(1, text, {"--inner-steps", "50", "--fully-shard"}, "leave out --fully-shard");
  refused(1, text, {"--inner-steps", "50", "--fragments", "4"}, "4 does not divide 50");
  refused(1, text, {"--inner-steps", "50", "--steps", "1601"}, "--steps must be a multiple of the 50 steps");
  refused(1, text, {"--inner-steps", "50", "--overlap", "50"}, "--overlap must be below the 50 steps");
  refused(1, text, {"--inner-steps", "50", "--outer-lr", "0"}, "--outer-lr must be above 0, not 0");
  refused(1, text, {"--inner-steps", "50", "--outer-momentum", "-1"}, "--outer-momentum must be at least 0 and below 1, not -1");
  refused(1, text, {"--inner-steps", "50", "--steps", "50", "--fragments", "50"}, "--fragments must be at most 18");
  refused(1, text, {"--trace", directory.path() + "/missing/trace"}, "/missing/trace.0' cannot be written");
  refused(1, text, {"--resume"}, "--checkpoint DIR");
  refused(1, text, {"--checkpoint-every", "5"}, "--checkpoint DIR");
  refused(1, text, {"--checkpoint", directory.path(), "--checkpoint-every", "0"}, "from 1 to");
  refused(2, text, {"--checkpoint", directory.path() + "/none", "--resume"}, "no checkpoint in " + directory.path() + "/none");
  if (!std::filesystem::exists("/dev/full")) return;
  const Outcome help = run_command({"launch", "-n", "1", "--", "/bin/sh", "-c", TRAIN_TEXT " --help >/dev/full"});
  CHECK(help.exit_code == 1);
  CHECK_THAT(help.err, Contains("cannot write to standard output"));
}
