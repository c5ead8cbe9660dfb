#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "input_error.hpp"

namespace train_text {
namespace {

constexpr const char* kExample =
    "Example: four ranks on this machine\n"
    "  ringlet launch -n 4 -- train_text --steps 1600 --batch 16\n"
    "Alone, on a text of your own:\n"
    "  train_text --data poems.txt --context 128\n"
    "A larger model, of which each of four ranks keeps a quarter:\n"
    "  ringlet launch -n 4 -- train_text --fully-shard --layers 6 --width 256\n"
    "On a slow network, with an average every 50 steps:\n"
    "  ringlet launch -n 4 -- train_text --inner-steps 50 --wire int8\n"
    "What each rank does when, for ui.perfetto.dev:\n"
    "  ringlet launch -n 4 --trace trace.json -- train_text --steps 50\n"
    "With checkpoints, and on from the newest one with three ranks:\n"
    "  ringlet launch -n 4 -- train_text --checkpoint saved --checkpoint-every 200\n"
    "  ringlet launch -n 3 -- train_text --checkpoint saved --checkpoint-every 200 --resume\n"
    "\n"
    "Exit codes: 0 done; 1 the training failed, or it is done and a log is not whole (stderr says so when it happens); 2 a mistake on the\n"
    "command line, or a text or a checkpoint that does not fit.";

Mode chosen_mode(bool fsdp, bool fully_shard) {
  if (fsdp && fully_shard) throw InputError("--fsdp and --fully-shard are two modes of training: choose one of them");
  return fully_shard ? Mode::fully_shard : fsdp ? Mode::fsdp : Mode::data_parallel;
}

std::string type_name(const std::optional<ringlet::Wire>& type) { return std::string(type ? ringlet::name_of(*type) : "none"); }

/// Returns "none" and the name of each dtype or block format that gradients can be sent in.
std::vector<std::string> communication_types() {
  std::vector<std::string> names{type_name(std::nullopt)};
  for (std::size_t number = 0; number < ringlet::kDTypeCount; ++number)
    if (const auto type = static_cast<ringlet::DType>(number); ringlet::is_narrow(type)) names.push_back(type_name(type));
  for (std::size_t number = 0; number < ringlet::kBlockFormatCount; ++number)
    names.push_back(type_name(wire_in_blocks(static_cast<ringlet::BlockFormat>(number))));
  return names;
}

/// A variable of the shell that is not set makes an empty name, and what was to be written there would be lost without a word.
std::string problem_of_name(const std::string& name) { return name.empty() ? "an empty name; is a variable of the shell not set?" : ""; }

/// CLI11 itself takes -1 and too large numbers for others, or does not say what is possible.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& value, T least, T most, const std::string& description) {
  const auto check = [least, most](const std::string& text) {
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= least && number <= most) return std::string();
    return fmt::format("a whole number from {} to {} is possible, not {}", least, most, text);
  };
  return app.add_option(names, value, description)->check(check)->capture_default_str();
}

CLI::Option* add_number(CLI::App& app, const std::string& names, int& value, Range range, const std::string& description) {
  return add_number(app, names, value, range.least, range.most, description);
}

void check_outer_options(const CLI::App& app, const Options& options) {
  for (const char* name : {"--fragments", "--overlap", "--outer-lr", "--outer-momentum"})
    if (options.inner_steps == 0 && app.get_option(name)->count() > 0)
      throw InputError(fmt::format("{} goes with --inner-steps of 1 or more", name));
}

void check(const Options& options) {
  if (const std::string problem = problem_of(options); !problem.empty()) throw InputError(problem);
  if (options.resume && options.checkpoint.empty()) throw InputError("--resume needs --checkpoint DIR, the folder to go on from");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> lasting_values(const Settings& settings) {
  const auto text = [](auto value) { return fmt::format("{}", value); };
  return {{"layers", text(settings.shape.layers)}, {"width", text(settings.shape.width)},
          {"heads", text(settings.shape.heads)},   {"context", text(settings.shape.context)},
          {"steps", text(settings.steps)},         {"batch", text(settings.batch)},
          {"seed", text(settings.seed)},           {"learning-rate", text(settings.learning_rate)},
          {"clip-norm", text(settings.clip_norm)}};
}

std::vector<std::pair<std::string, std::string>> named_values(const Settings& settings) {
  auto values = lasting_values(settings);
  const auto yes_or_no = [](bool value) { return std::string(value ? "yes" : "no"); };
  values.insert(values.end(), {{"fsdp", yes_or_no(settings.mode == Mode::fsdp)},
                               {"fully-shard", yes_or_no(settings.mode == Mode::fully_shard)},
                               {"all-reduce-size", fmt::format("{}", settings.all_reduce_size)},
                               {"communication-type", type_name(settings.communication_type)},
                               {"shares", std::string(name_of(settings.shares))},
                               {"inner-steps", fmt::format("{}", settings.inner_steps)},
                               {"fragments", fmt::format("{}", settings.fragments)},
                               {"overlap", fmt::format("{}", settings.overlap)},
                               {"outer-lr", fmt::format("{}", settings.outer_learning_rate)},
                               {"outer-momentum", fmt::format("{}", settings.outer_momentum)},
                               {"check-every", fmt::format("{}", settings.check_every)},
                               {"checkpoint-every", fmt::format("{}", settings.checkpoint_every)},
                               {"resume", yes_or_no(settings.resume)}});
  return values;
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  options.data = TRAIN_TEXT_DEFAULT_DATA;
  std::string communication_type = type_name(options.communication_type);

  std::string shares = "auto";
  bool fsdp = false;
  bool fully_shard = false;

  CLI::App app(
      "Trains a small language model over bytes. The ranks of a Ringlet group share each batch, and, if wanted, the model. Rank 0's "
      "options and text count for all; of another rank's only its own folder for checkpoints does.",
      "train_text");
  app.footer(kExample);
  app.add_option("--data", options.data, "Text file, or folder of sources and documents; no device or pipe")
      ->check(problem_of_name)
      ->capture_default_str();
  add_number(app, "--steps", options.steps, kSteps, "Updates of the parameters");
  add_number(app, "--batch", options.batch, kSequences, "Sequences per step of the whole group; the ranks share them");
  add_number(app, "--seed", options.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
             "Chooses the initial parameters and the batches");
  CLI::Option* rate = app.add_option("--learning-rate", options.learning_rate,
                                     fmt::format("Peak learning rate of AdamW; {} unless given with --inner-steps", kInnerLearningRate))
                          ->capture_default_str();
  app.add_option("--clip-norm", options.clip_norm, "Gradients are scaled down to this global norm; 0: never")->capture_default_str();
  app.add_flag("--fsdp", fsdp,
               "Each rank updates its shard of the parameters, and one more beside it, and keeps the optimizer's state for these alone");
  app.add_flag("--fully-shard", fully_shard, "Each rank keeps its shard of the parameters too; full ones are gathered module by module");
  add_number(app, "--layers", options.shape.layers, kSizes, "Transformer blocks");
  add_number(app, "--width", options.shape.width, kSizes, "Features per token");
  add_number(app, "--heads", options.shape.heads, kSizes, "Attention heads; must divide the width");
  add_number(app, "--context", options.shape.context, kSizes, "Bytes of text that the model sees");
  add_number(app, "--all-reduce-size", options.all_reduce_size, std::int64_t{0}, std::numeric_limits<std::int64_t>::max(),
             "Bytes of gradients moved together; 0: each part by itself (--fully-shard: a module's together)");
  app.add_option("--shares", shares,
                 "even: the ranks share a batch evenly; measured: the slower a rank, the fewer sequences (--inner-steps: steps) it takes; "
                 "auto: measured beside "
                 "browsers, else even")
      ->check(CLI::IsMember({"auto", "even", "measured"}))
      ->capture_default_str();
  add_number(app, "--check-every", options.check_every, kStepsOrNone,
             "Steps between two comparisons of the ranks' parameters; 0, and with --inner-steps: only at the end");
  app.add_option("--wire,--communication-type", communication_type,
                 "Type of the gradients on the network: none keeps f32; int8 and int4 are in blocks with one scale, with error feedback")
      ->check(CLI::IsMember(communication_types()))
      ->capture_default_str();
  CLI::Option* inner =
      add_number(app, "--inner-steps", options.inner_steps, kStepsOrNone,
                 "Each rank trains alone for so many steps before the ranks average their parameters (DiLoCo), for slow networks: it sends "
                 "that many times less, and costs loss; 0: gradients are averaged in each step");
  add_number(app, "--fragments", options.fragments, kSteps, "With --inner-steps: parts of the model that are averaged one after the other")
      ->needs(inner);
  add_number(app, "--overlap", options.overlap, kStepsOrNone, "With --inner-steps: steps that go on while a part is averaged")
      ->needs(inner);
  app.add_option("--outer-lr", options.outer_learning_rate, "With --inner-steps: learning rate of the averages")
      ->needs(inner)
      ->capture_default_str();
  app.add_option("--outer-momentum", options.outer_momentum, "With --inner-steps: Nesterov's momentum of the averages")
      ->needs(inner)
      ->capture_default_str();
  app.add_flag("--json", options.json, "Rank 0 ends with one line of JSON on stdout; all else goes to stderr");
  app.add_option("--log-losses", options.log_losses,
                 "Rank 0 writes each step's number and mean loss to this file (--inner-steps: those of its own sequences; where it is "
                 "lost, the next "
                 "rank's follow); --resume appends")
      ->check(problem_of_name);
  app.add_option(
         "--log-hashes", options.log_hashes,
         "Whenever the ranks compare their parameters, each writes the step and its own hash to this file, behind its name the number "
         "that `ringlet launch`, `run` or `serve` has given the rank, or its rank; one that joins later adds the group's epoch. "
         "A rank that they start again appends to its file, and so does --resume")
      ->check(problem_of_name);
  app.add_option("--trace", options.trace,
                 "Write what this rank does when to FILE, which opens in ui.perfetto.dev; a rank among several writes its part beside it. "
                 "`ringlet launch --trace` makes one file for all ranks")
      ->type_name("FILE")
      ->check(problem_of_name);
  app.add_option("--checkpoint", options.checkpoint, "Folder for checkpoints, shared by the ranks or on each machine; the newest two stay")
      ->check(problem_of_name);
  CLI::Option* every = add_number(
      app, "--checkpoint-every", options.checkpoint_every, kSteps,
      "Steps between checkpoints; the last step has one too. With --inner-steps a multiple of those between two averages, and the folders' "
      "names count averages");
  app.add_flag("--resume", options.resume,
               "Goes on from the newest checkpoint; the number of ranks may be another, and so may the mode, but for --inner-steps");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help() << std::flush;
    if (!std::cout) throw std::runtime_error("cannot write to standard output");
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("{} (see --help)", error.what()));
  }
  if (options.inner_steps > 0 && rate->count() == 0) options.learning_rate = kInnerLearningRate;
  options.mode = chosen_mode(fsdp, fully_shard);
  options.communication_type = ringlet::find_wire(communication_type, wire_in_blocks(ringlet::BlockFormat::int8).options());
  options.shares_follow_guests = shares == "auto";
  options.shares = shares == "measured" ? Shares::measured : Shares::even;
  options.saves = !options.checkpoint.empty();
  if (options.json) options.sample_bytes = 0;
  for (const auto& [name, value] : named_values(options)) {
    if (app.get_option("--" + name)->count() > 0) options.given.push_back(name);
  }
  check_outer_options(app, options);
  check(options);
  if (every->count() > 0 && options.checkpoint.empty())
    throw InputError("--checkpoint-every needs --checkpoint DIR, the folder to save in");
  return options;
}

void set_guests(Options& options, int guests) {
  options.guests = guests;
  if (options.shares_follow_guests) options.shares = guests > 0 ? Shares::measured : Shares::even;
}

}  // namespace train_text
