#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <string>

#include "corpus.hpp"
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
    "With checkpoints, and on from the newest one with three ranks:\n"
    "  ringlet launch -n 4 -- train_text --checkpoint saved --checkpoint-every 200\n"
    "  ringlet launch -n 3 -- train_text --checkpoint saved --checkpoint-every 200 --resume";

Mode chosen_mode(bool fsdp, bool fully_shard) {
  if (fsdp && fully_shard) throw InputError("--fsdp and --fully-shard are two modes of training: choose one of them");
  return fully_shard ? Mode::fully_shard : fsdp ? Mode::fsdp : Mode::data_parallel;
}

std::string type_name(const std::optional<ringlet::DType>& type) { return std::string(type ? ringlet::name_of(*type) : "none"); }

void check(const Options& options) {
  if (options.steps < 1) throw InputError(fmt::format("--steps must be at least 1, not {}", options.steps));
  if (options.batch < 1) throw InputError(fmt::format("--batch must be at least 1, not {}", options.batch));
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    throw InputError(fmt::format("--learning-rate must be above 0, not {}", options.learning_rate));
  }
  if (options.checkpoint_every < 1)
    throw InputError(fmt::format("--checkpoint-every must be at least 1, not {}", options.checkpoint_every));
  if (options.resume && options.checkpoint.empty()) throw InputError("--resume needs --checkpoint DIR, the folder to go on from");
  if (!(options.clip_norm >= 0) || !std::isfinite(options.clip_norm)) {
    throw InputError(fmt::format("--clip-norm must be 0 (no clipping) or more, not {}", options.clip_norm));
  }
  check_shape(options.shape);
}

}  // namespace

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::data_parallel:
      return "data-parallel";
    case Mode::fsdp:
      return "fsdp";
    case Mode::fully_shard:
      break;
  }
  return "fully-shard";
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  options.data = TRAIN_TEXT_DEFAULT_DATA;
  std::string communication_type = type_name(options.communication_type);

  bool fsdp = false;
  bool fully_shard = false;

  CLI::App app("Trains a small language model over bytes. The ranks of a Ringlet group share each batch, and, if wanted, the model.",
               "train_text");
  app.footer(kExample);
  app.add_option("--data", options.data, "Text file, or folder of sources and documents")->capture_default_str();
  app.add_option("--steps", options.steps, "Updates of the parameters")->capture_default_str();
  app.add_option("--batch", options.batch, "Sequences per step of the whole group; the ranks share them")->capture_default_str();
  app.add_option("--seed", options.seed, "Chooses the initial parameters and the batches")->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate, "Peak learning rate of AdamW")->capture_default_str();
  app.add_option("--clip-norm", options.clip_norm, "Gradients are scaled down to this global norm; 0: never")->capture_default_str();
  app.add_flag("--fsdp", fsdp, "Each rank updates its shard of the parameters and keeps the optimizer's state for it alone");
  app.add_flag("--fully-shard", fully_shard, "Each rank keeps its shard of the parameters too; full ones are gathered module by module");
  app.add_option("--layers", options.shape.layers, "Transformer blocks")->capture_default_str();
  app.add_option("--width", options.shape.width, "Features per token")->capture_default_str();
  app.add_option("--heads", options.shape.heads, "Attention heads; must divide the width")->capture_default_str();
  app.add_option("--context", options.shape.context, "Bytes of text that the model sees")->capture_default_str();
  app.add_option("--all-reduce-size", options.all_reduce_size,
                 "Bytes of gradients moved together; 0: each part by itself (--fully-shard: a module's together)")
      ->capture_default_str();
  app.add_option("--communication-type", communication_type, "Type of the gradients on the network: none keeps f32")
      ->check(CLI::IsMember({"none", "f16", "bf16"}))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Rank 0 ends with one line of JSON on stdout; all else goes to stderr");
  app.add_option("--log-losses", options.log_losses, "Rank 0 writes each step's number and mean loss to this file; --resume appends");
  app.add_option("--checkpoint", options.checkpoint, "Folder for checkpoints, shared by the ranks or on each machine; the newest two stay");
  CLI::Option* every =
      app.add_option("--checkpoint-every", options.checkpoint_every, "Steps between checkpoints; the last step has one too")
          ->capture_default_str();
  app.add_flag("--resume", options.resume, "Goes on from the newest checkpoint; the mode and the number of ranks may be others");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("{} (see --help)", error.what()));
  }
  options.mode = chosen_mode(fsdp, fully_shard);
  options.communication_type = ringlet::find_dtype(communication_type);
  check(options);
  if (every->count() > 0 && options.checkpoint.empty())
    throw InputError("--checkpoint-every needs --checkpoint DIR, the folder to save in");
  return options;
}

std::uint64_t hash_of_shared(const Options& options) {
  const ModelShape& shape = options.shape;
  const std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", name_of(options.mode), shape.layers, shape.width,
                                       shape.heads, shape.context, options.steps, options.batch, options.seed, options.learning_rate,
                                       options.clip_norm, options.all_reduce_size, type_name(options.communication_type), options.json,
                                       !options.checkpoint.empty(), options.checkpoint_every, options.resume);
  return hash_of(std::as_bytes(std::span(text)));
}

}  // namespace train_text
