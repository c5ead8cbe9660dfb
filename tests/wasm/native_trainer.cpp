// A native rank that trains with browsers and Node: native_trainer STEPS PAUSE_MS FOLDER [CHECKPOINTS]. It does what
// wasm/tests/training/elastic_program.ts does, and writes a line for each step that it commits to FOLDER/PROCESS: the step, the number of
// ranks, the epoch, a hash of the state. Each tenth step is saved to CHECKPOINTS; with --sharded in its place the state is in shards. With
// --loop it does what wasm/tests/training/own_loop.ts does: no trainer, but a loop of its own, to the step in which rank 0 finds the file
// FOLDER/end (STEPS, which then counts for nothing, may be 0). With --outer WIRE OVERLAP it trains with few
// averages, as wasm/tests/training/outer_program.ts does: a line then has the number of averages, and a hash of the shared parameters.
// Before it come lines with the number of each inner step, and the rank that this one was.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ringlet/ringlet.hpp>
#include <string>
#include <thread>
#include <vector>

using namespace ringlet;

namespace {

// A power of two, so that the weights of all divisions are exact.
constexpr std::uint64_t kBatch = 64;

/// Ranks that wait for guests hurry less, so that the training does not end without them.
void pause(const Group& world, const char* milliseconds) {
  const char* expected = std::getenv("RINGLET_GUESTS");
  const bool is_complete = expected == nullptr || world.guests() >= std::atoi(expected);
  std::this_thread::sleep_for(std::chrono::milliseconds(is_complete ? std::atoi(milliseconds) : 50));
}

/// What all ranks have.
struct Model {
  /// Gets the same from each sample of a step, so it shows how often each step was done, exactly.
  std::vector<float> exact = std::vector<float>(5'000);
  /// Gets something else from each sample.
  std::vector<float> mixed = std::vector<float>(3);
  std::vector<std::int32_t> steps = std::vector<std::int32_t>(1);
};

std::uint32_t hash_of(const Tree& tree) {
  std::uint32_t hash = 0x811c9dc5;
  for (const Leaf& leaf : tree)
    for (const std::byte byte : std::span(static_cast<const std::byte*>(leaf.values.data()), leaf.values.bytes()))
      hash = (hash ^ std::to_integer<std::uint32_t>(byte)) * 0x01000193u;
  return hash;
}

Tree tree_of(Model& model) { return {{"exact", model.exact}, {"mixed", model.mixed}, {"steps", model.steps}}; }

void write_line(std::ofstream& journal, std::uint64_t step, const Group& world, const Tree& tree) {
  char line[64];
  std::snprintf(line, sizeof line, "%d %d %u %08x", static_cast<int>(step), world.size(), world.epoch(), hash_of(tree));
  journal << line << std::endl;
}

void compute_gradients(const Step& step, Model& gradients) {
  for (std::size_t i = 0; i < gradients.exact.size(); ++i) gradients.exact[i] = static_cast<float>((step.number() * 7 + i) % 13);
  for (std::size_t i = 0; i < gradients.mixed.size(); ++i) {
    float sum = 0;
    for (std::uint64_t sample = step.first(); sample < step.first() + step.count(); ++sample)
      sum += static_cast<float>((step.number() * 31 + sample * 17 + i) % 101);
    gradients.mixed[i] = sum / static_cast<float>(step.count());
  }
}

void apply(const Model& gradients, Model& model) {
  for (std::size_t i = 0; i < model.exact.size(); ++i) model.exact[i] += gradients.exact[i];
  for (std::size_t i = 0; i < model.mixed.size(); ++i) model.mixed[i] += 0.125f * gradients.mixed[i];
  ++model.steps[0];
}

std::ofstream open_journal(char** argv) { return std::ofstream(std::string(argv[3]) + "/" + std::to_string(::getpid())); }

void train(int argc, char** argv) {
  const std::uint64_t steps = std::strtoull(argv[1], nullptr, 10);
  std::ofstream journal = open_journal(argv);
  Model model, gradients;
  Checkpoint state;
  state.add("model", tree_of(model));
  state.set("last", std::int64_t{-1}).set("rate", 0.1).set("name", "a \"name\"");
  ElasticTrainerOptions options;
  options.on_change = [](const MembershipChange& change) {
    std::printf("step %d: %d ranks, %d of them new, %zu lost\n", static_cast<int>(change.step), change.world.size(), change.joined,
                change.lost.size());
    std::fflush(stdout);
  };
  options.on_state = [&](const Checkpoint& now, std::uint64_t step) {
    const bool fits =
        model.steps[0] == static_cast<std::int32_t>(step) && now.get<std::int64_t>("last") == static_cast<std::int64_t>(step) - 1;
    if (!fits) throw InvalidArgument({Errc::invalid_argument, "what came is not the state of step " + std::to_string(step)});
  };
  if (argc > 4) {
    options.checkpoint = argv[4];
    options.checkpoint_every = 10;
  }
  ElasticTrainer trainer(init(), state, options);
  trainer.run({.steps = steps, .batch = kBatch}, [&](Step& step) {
    compute_gradients(step, gradients);
    pause(step.world(), argv[2]);
    step.average({{"exact", gradients.exact}, {"mixed", gradients.mixed}});
    step.commit([&] {
      apply(gradients, model);
      trainer.state().set("last", static_cast<std::int64_t>(step.number()));
      write_line(journal, step.number(), step.world(), tree_of(model));
    });
  });
}

/// Trains with state that no browser can hold.
void train_sharded(char** argv) {
  std::vector<float> parameters(100), gradients(100, 0.5f);
  const Group world = init();
  ElasticFsdp fsdp(world, Tree{{"all", parameters}}, [] { return std::make_unique<AdamW>(1e-3); });
  ElasticTrainer trainer(world, Checkpoint(), fsdp);
  trainer.run({.steps = std::strtoull(argv[1], nullptr, 10), .batch = kBatch}, [&](Step& step) {
    pause(step.world(), argv[2]);
    fsdp.average(Tree{{"all", gradients}});
    step.commit([&] { fsdp.update(); });
  });
}

/// Trains with few averages. Ranks pull the parameters towards values of their own.
void train_outer(const std::string& wire, int overlap, char** argv) {
  std::ofstream journal = open_journal(argv);
  std::vector<float> wide(5'000), narrow(70);
  std::vector<double> exact(3);
  OuterTrainerOptions options{.inner_steps = 8, .fragments = 2, .overlap = overlap, .by_speed = true};
  if (wire == "int8") options.wire = Wire::int8({.feedback = true, .least_elements = 0});
  OuterTrainer trainer(init(), Tree{{"layer.wide", wide}, {"layer.exact", exact}, {"narrow", narrow}}, options);
  std::uint64_t next = 0;
  const auto note_average = [&] {
    if (trainer.averages() < next) return;
    next = trainer.averages() + 1;
    write_line(journal, trainer.averages(), trainer.world(), trainer.shared_parameters());
    pause(trainer.world(), argv[2]);
  };
  trainer.run(std::strtoull(argv[1], nullptr, 10), [&](const InnerStep& step) {
    note_average();
    const auto pull = [&](auto& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto target = static_cast<double>((step.number * 7919 + static_cast<std::uint64_t>(step.rank) * 104'729 + i * 31) % 1009);
        values[i] += static_cast<std::decay_t<decltype(values[i])>>(0.05 * (target / 1009 - static_cast<double>(values[i])));
      }
    };
    pull(wide);
    pull(exact);
    pull(narrow);
    journal << "step " << step.number << ' ' << step.rank << std::endl;
    return static_cast<double>((step.number + static_cast<std::uint64_t>(step.rank)) % 3 + 1);
  });
  note_average();
}

/// Gives the state to those that have just come: in each new world all get that of rank 0.
void share(Group& world, Model& model) {
  // What is lost in the midst of a broadcast is a copy.
  Model copy = model;
  world.broadcast(copy.exact, 0);
  world.broadcast(copy.steps, 0);
  model = copy;
}

/// Counts the step where all agree on it. Returns whether it is the last one, which it is if one rank says so.
bool take_step(Group& world, Model& model, bool is_last, std::ofstream& journal) {
  const std::int32_t step = model.steps[0];
  std::vector<float> sums(model.exact.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>((static_cast<std::size_t>(step) * 7 + i) % 13);
  sums.push_back(is_last ? 1 : 0);
  world.all_sum(sums);
  if (!world.agree(true)) return false;
  for (std::size_t i = 0; i < model.exact.size(); ++i) model.exact[i] += sums[i] / static_cast<float>(world.size());
  ++model.steps[0];
  write_line(journal, static_cast<std::uint64_t>(step), world, tree_of(model));
  return sums.back() > 0;
}

/// Goes on after losses by itself. Rank 0 revokes the epoch where it finds the file FOLDER/revoke, which it removes.
void loop(char** argv) {
  const std::string folder = std::string(argv[3]) + "/";
  std::ofstream journal = open_journal(argv);
  Model model;
  Group world = init();
  bool is_new = true, is_over = false;
  while (!is_over) {
    try {
      if (auto next = world.admit()) {
        world = next->world;
        is_new = true;
      }
      if (is_new) share(world, model);
      is_new = false;
      if (world.rank() == 0 && world.guests() > 0 && std::filesystem::remove(folder + "revoke")) world.revoke();
      pause(world, argv[2]);
      is_over = take_step(world, model, world.rank() == 0 && std::filesystem::exists(folder + "end"), journal);
    } catch (const Error& error) {
      if (error.status().code() != Errc::peer_lost && error.status().code() != Errc::cancelled) throw;
      std::printf("epoch %u: %s, rank %d\n", world.epoch(), name_of(error.status().code()).data(), error.status().rank());
      std::fflush(stdout);
      world = world.reform().world;
      is_new = true;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string mode = argc > 4 ? argv[4] : "";
    if (mode == "--sharded")
      train_sharded(argv);
    else if (mode == "--loop")
      loop(argv);
    else if (mode == "--outer")
      train_outer(argc > 5 ? argv[5] : "", argc > 6 ? std::atoi(argv[6]) : 0, argv);
    else
      train(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "native_trainer: %s\n", error.what());
    return 1;
  }
}
