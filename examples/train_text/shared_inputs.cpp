#include "shared_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ringlet/error.hpp>
#include <utility>

#include "checkpoints.hpp"
#include "input_error.hpp"

namespace train_text {
namespace {

/// Ranks that join later may have no sequence of their own.
std::string problem_of_batch(const Settings& settings, const ringlet::Group& group) {
  const int ranks = group.size();
  if (group.epoch() > 0 || settings.shares == Shares::measured || settings.batch >= ranks) return {};
  return fmt::format("--batch {} leaves some of the {} ranks without a sequence: give at least {}, or --shares measured", settings.batch,
                     ranks, ranks);
}

// The announcement and the bytes that follow it: the folder and the text, or the reason for a refusal.
struct Sent {
  Announcement announcement;
  Bytes body;
};

Sent refusal(const Settings& settings, std::string_view reason) {
  return {{.settings = settings, .refused = true, .text_bytes = reason.size()}, Bytes(reason.begin(), reason.end())};
}

Sent what_rank_0_sends(const Options& own, const ringlet::Group& group, const std::function<Bytes()>& load, bool running) {
  try {
    if (const std::string problem = problem_of(own); !problem.empty()) return refusal(own, problem);
    if (const std::string problem = problem_of_batch(own, group); !problem.empty()) return refusal(own, problem);
    // Without browsers the native ranks look together.
    if (own.inner_steps > 0 && own.guests > 0 && own.saves && !running) check_folder(own, ringlet::Group());
    Bytes text = load();
    if (const std::string problem = problem_of_text(text.size(), own.shape.context); !problem.empty()) return refusal(own, problem);
    if (text.size() > kMaxTextBytes)
      return refusal(own,
                     fmt::format("the text has {} bytes, and {} are possible: name a smaller one with --data", text.size(), kMaxTextBytes));
    // Browsers have no files, and beside them rank 0 alone saves, except with --inner-steps.
    const std::string folder = own.guests == 0 || own.inner_steps > 0 ? own.checkpoint.string() : std::string();
    text.insert(text.begin(), folder.begin(), folder.end());
    return {{.settings = own, .folder_bytes = static_cast<std::uint32_t>(folder.size()), .text_bytes = text.size() - folder.size()},
            std::move(text)};
  } catch (const InputError& error) {
    return refusal(own, error.what());
  }
}

std::string overruled_options(const Options& own, const Settings& settings) {
  const auto mine = named_values(own);
  const auto theirs = named_values(settings);
  std::string text;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i] == theirs[i] || std::ranges::count(own.given, mine[i].first) == 0) continue;
    text += fmt::format("{}--{} is {}, not {}", text.empty() ? "" : "; ", mine[i].first, theirs[i].second, mine[i].second);
  }
  return text;
}

/// What rank 0 has sent. Throws `InputError` with its reason where it has refused.
Sent exchange_inputs(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load, bool running) {
  Sent sent;
  if (group.rank() == 0) sent = what_rank_0_sends(own, group, load, running);
  sent.announcement.elastic = group.elastic();
  sent.announcement.running = running;
  Record record = encode(sent.announcement);
  group.broadcast(ringlet::TensorView(record.data(), ringlet::DType::u8, record.size()), 0);
  Decoded decoded = decode(record);
  if (!decoded.problem.empty()) throw InputError(decoded.problem);

  sent.announcement = decoded.announcement;
  sent.body.resize(sent.announcement.folder_bytes + static_cast<std::size_t>(sent.announcement.text_bytes));
  group.broadcast(sent.body, 0);
  if (sent.announcement.refused) throw InputError(std::string(sent.body.begin(), sent.body.end()));
  return sent;
}

SharedInputs inputs_of(Sent sent, const Options& own, bool is_rank_0) {
  Options options = own;
  static_cast<Settings&>(options) = sent.announcement.settings;
  Bytes& body = sent.body;
  const auto text_begin = body.begin() + sent.announcement.folder_bytes;
  if (options.checkpoint.empty()) options.checkpoint = std::string(body.begin(), text_begin);
  body.erase(body.begin(), text_begin);
  std::string overruled = is_rank_0 ? std::string() : overruled_options(own, options);
  const int context = options.shape.context;
  return {std::move(options), Corpus(std::move(body), context), std::move(overruled), sent.announcement.running};
}

/// Returns nothing, on all ranks alike, where a rank was lost meanwhile.
std::optional<Sent> try_to_exchange(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load, bool running) {
  std::optional<Sent> sent;
  try {
    sent = exchange_inputs(group, own, load, running);
  } catch (const ringlet::Error& error) {
    const bool is_a_loss = error.status().code() == ringlet::Errc::peer_lost || error.status().code() == ringlet::Errc::cancelled;
    if (!group.elastic() || !is_a_loss) throw;
  }
  if (group.elastic() && !group.agree(sent.has_value())) return std::nullopt;
  return sent;
}

std::optional<SharedInputs> try_to_share(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load, bool running) {
  auto sent = try_to_exchange(group, own, load, running);
  if (!sent) return std::nullopt;
  return inputs_of(*std::move(sent), own, group.rank() == 0);
}

}  // namespace

SharedInputs share_inputs(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load, bool running) {
  while (true) {
    // All have them, or all that are left share them once more.
    if (auto inputs = try_to_share(group, own, load, running)) return *std::move(inputs);
    group = group.reform().world;
  }
}

void tell_browsers(ringlet::Group& group, const Options& options, const Corpus& corpus) {
  const auto text = [&] { return Bytes(corpus.text().begin(), corpus.text().end()); };
  // A group that has failed keeps its first error, which each later call throws.
  if (!try_to_exchange(group, options, text, true)) group.barrier();
}

SharedInputs join_inputs(ringlet::Group& group, const Options& own, const std::function<Bytes()>& load) {
  while (group.guests() > 0) {
    if (auto inputs = try_to_share(group, own, load, true)) return *std::move(inputs);
    group = group.reform().world;
  }
  return {own, Corpus(load(), own.shape.context), {}, true};
}

}  // namespace train_text
