#include "core/engine/delay_text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/rank_text.hpp"

namespace ringlet {

namespace {

/// A text describes at most this many late ranks and counts the others.
constexpr std::size_t kDescribed = 8;

std::string latecomer_text(const Latecomer& one) {
  return rank_text(static_cast<std::uint64_t>(one.rank)) + (one.host.empty() ? "" : " (" + one.host + ")");
}

std::string and_more(std::size_t count) { return count > kDescribed ? " and " + std::to_string(count - kDescribed) + " more" : ""; }

/// Describes the late ranks: "rank 2 (attic), which is still in ..., and rank 3 (porch), which computes".
std::string described(const std::vector<Latecomer>& late) {
  std::string text;
  const std::size_t shown = std::min(late.size(), kDescribed);
  for (std::size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : i + 1 == late.size() ? ", and for " : ", for ") + latecomer_text(late[i]) + ", which " + late[i].doing;
  return text + and_more(late.size());
}

std::string numbers(const std::vector<Latecomer>& late) {
  std::string text = late.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(late.size(), kDescribed); ++i) text += (i == 0 ? "" : ", ") + std::to_string(late[i].rank);
  return text + and_more(late.size());
}

std::string waits_text(const wire::OperationState& operation) {
  if (operation.waits_for.empty()) return "";
  std::string text = operation.waits_for.size() == 1 ? ", waiting for rank " : ", waiting for ranks ";
  for (std::size_t i = 0; i < std::min(operation.waits_for.size(), kDescribed); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(operation.waits_for[i]);
  return text + and_more(operation.waits_for.size());
}

/// The operation's progress as the end of a sentence: ", 3.0 of 8.0 MiB received".
std::string moved_text(const wire::OperationState& operation) {
  if (operation.to_receive > 0) return ", " + progress_text(operation.received, operation.to_receive) + " received";
  if (operation.to_send > 0) return ", " + progress_text(operation.sent, operation.to_send) + " sent";
  return "";
}

}  // namespace

std::string seconds_text(Duration duration) {
  const std::int64_t tenths = duration.whole_milliseconds() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string name_of(const wire::OperationState& operation) {
  return operation.call + " number " + std::to_string(operation.number) +
         (operation.stream == 0 ? "" : " of stream " + std::to_string(operation.stream)) + operation.group;
}

std::string progress_text(std::uint64_t bytes, std::uint64_t of_bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double scale = 1;
  while (unit + 1 < kUnits.size() && static_cast<double>(of_bytes) / scale >= 1024) {
    ++unit;
    scale *= 1024;
  }
  char text[96];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f of %.0f %s" : "%.1f of %.1f %s", static_cast<double>(bytes) / scale,
                static_cast<double>(of_bytes) / scale, kUnits[unit]);
  return text;
}

std::string describe_absent(const wire::RankState& state, const wire::OperationState& operation) {
  if (!state.running.empty()) {
    const wire::OperationState& running = state.running.front();
    const bool same_stream = running.stream == operation.stream && running.group == operation.group;
    return (same_stream ? "is still in " : "is in ") + name_of(running) + moved_text(running) + waits_text(running);
  }
  if (state.last.call.empty()) return "computes and has not called anything yet";
  return "computes since its " + name_of(state.last) + " ended " +
         seconds_text(Duration::milliseconds(static_cast<std::int64_t>(state.last.milliseconds))) + " ago";
}

std::string describe_present(const wire::OperationState& operation) {
  return "has called it" + moved_text(operation) + waits_text(operation);
}

std::string describe_delay(const Delay& delay, const std::string& slowest) {
  const std::string waited = seconds_text(Duration::milliseconds(delay.waited.count()));
  if (delay.over) return delay.operation + " has gone on after " + waited;
  const std::string begin = delay.operation + " has waited " + waited;
  if (delay.late.empty()) return begin + ", though all ranks have called it" + (slowest.empty() ? "" : "; " + slowest);
  return begin + " for " + (delay.speaks ? described(delay.late) : numbers(delay.late));
}

}  // namespace ringlet
