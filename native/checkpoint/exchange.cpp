#include "native/checkpoint/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/checksum.hpp"
#include "core/base/printable.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

namespace {

constexpr std::uint64_t kMaxTextBytes = 256u << 20;

void check_length(std::uint64_t bytes) {
  if (bytes > kMaxTextBytes)
    throw InvalidArgument({Errc::invalid_argument,
                           fmt::format("a checkpoint's description is {} bytes long; at most {} are possible", bytes, kMaxTextBytes)});
}

/// Bounds the memory that all ranks' texts take together, whatever one rank announces.
void check_lengths(const Group& group, const std::vector<std::uint64_t>& lengths) {
  std::uint64_t left = kMaxTextBytes;
  for (const std::uint64_t length : lengths) {
    if (length <= left) {
      left -= length;
      continue;
    }
    const auto longest = static_cast<int>(std::max_element(lengths.begin(), lengths.end()) - lengths.begin());
    const Membership& members = group.shared().engine().members();
    throw InvalidArgument({Errc::invalid_argument,
                           fmt::format("{} describes a checkpoint in {} bytes, the most of {} ranks; at most {} are possible together",
                                       members.name_of(longest), lengths[static_cast<std::size_t>(longest)], lengths.size(), kMaxTextBytes),
                           members.world_rank(longest)});
  }
}

std::span<std::uint8_t> bytes_of(std::string& text) { return {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}; }

Status decode_failure(const std::string& text, std::size_t rank) {
  const int code = text.front() - '0';
  const bool known = code >= static_cast<int>(Errc::invalid_argument) && code <= static_cast<int>(Errc::io_error);
  return {known ? static_cast<Errc>(code) : Errc::io_error, fmt::format("rank {}: {}", rank, printable(text.substr(1))),
          static_cast<int>(rank)};
}

std::string line_at(const std::string& text, std::size_t begin) {
  if (begin >= text.size()) return "nothing more";
  return printable(text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace

void refuse_from(const Group& group, int rank, std::string_view what, std::string_view why) {
  const Membership& members = group.shared().engine().members();
  group.shared().fail_for_violation({Errc::protocol_error,
                                     fmt::format("{} sent {} that cannot be used: {}", members.name_of(rank), what, printable(why)),
                                     members.world_rank(rank)});
}

std::vector<std::string> Exchange::gather(const std::string& mine) const {
  const auto ranks = static_cast<std::size_t>(group_.size());
  std::vector<std::uint64_t> lengths(ranks);
  group_.all_gather(std::vector<std::uint64_t>{mine.size()}, lengths, call_);
  check_lengths(group_, lengths);
  const std::vector<std::int64_t> counts(lengths.begin(), lengths.end());
  std::vector<std::string> texts(ranks);
  std::string own = mine, all(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), '\0');
  if (all.empty()) return texts;
  group_.all_gather_v(bytes_of(own), bytes_of(all), counts, call_);
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < ranks; begin += lengths[rank++]) texts[rank] = all.substr(begin, lengths[rank]);
  return texts;
}

std::string Exchange::broadcast(const std::string& text, int root) const {
  std::uint64_t length = text.size();
  group_.broadcast(std::span(&length, 1), root, call_);
  check_length(length);
  std::string all = text;
  all.resize(length);
  group_.broadcast(bytes_of(all), root, call_);
  return all;
}

void Exchange::require_ok(const Status& mine, const std::function<void()>& undo) const {
  const auto failures = gather(mine.ok() ? "" : std::string(1, static_cast<char>('0' + static_cast<int>(mine.code()))) + mine.text());
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (failures[rank].empty()) continue;
    if (undo) undo();
    throw_if_failed(decode_failure(failures[rank], rank));
  }
}

void Exchange::require_same(std::string_view what, const std::string& mine) const {
  const auto ranks = static_cast<std::size_t>(group_.size());
  std::string digest = checksum_of(mine);
  std::string digests(digest.size() * ranks, '\0');
  group_.all_gather(bytes_of(digest), bytes_of(digests), call_);
  bool same = true;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    same &= digests.compare(rank * digest.size(), digest.size(), digests, 0, digest.size()) == 0;
  if (same) return;
  const auto texts = gather(mine);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto shorter = std::min(texts[0].size(), texts[rank].size());
    const auto differs = std::mismatch(texts[0].begin(), texts[0].begin() + static_cast<std::ptrdiff_t>(shorter), texts[rank].begin());
    const auto at = static_cast<std::size_t>(differs.first - texts[0].begin());
    const auto newline = at == 0 ? std::string::npos : texts[0].rfind('\n', at - 1);
    const auto line = newline == std::string::npos ? 0 : newline + 1;
    throw MismatchError({Errc::mismatch,
                         fmt::format("the ranks' {} differ: rank 0 has {}, rank {} has {}", what, line_at(texts[0], line), rank,
                                     line_at(texts[rank], line)),
                         static_cast<int>(rank)});
  }
}

}  // namespace ringlet::native
