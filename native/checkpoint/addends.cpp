#include "native/checkpoint/addends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/plan/part_layout.hpp"
#include "native/checkpoint/manifest_json.hpp"

namespace ringlet::native {

using nlohmann::json;

GroupAddends gather_addends(const Exchange& exchange, const Checkpoint& checkpoint) {
  GroupAddends all;
  if (checkpoint.addends().empty()) return all;
  std::map<std::string, std::span<float>> own;
  std::string told;
  exchange.require_ok(attempt([&] {
    json counts = json::object();
    for (const auto& [kind, addends] : checkpoint.addends())
      for (const auto& [name, values] : addends->own()) {
        own.emplace(addend_name(kind, name), values);
        counts[addend_name(kind, name)] = values.size();
      }
    told = counts.dump();
  }));
  const auto texts = exchange.gather(told);
  // The elements of all ranks together are counted in an i64, and their bytes, too.
  const std::uint64_t most = static_cast<std::uint64_t>(INT64_MAX) / sizeof(float) / texts.size();
  std::map<std::string, std::vector<std::size_t>> counts;  // by rank
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    read_from(exchange.group(), static_cast<int>(rank), "the sizes of its addends", [&] {
      const json of_rank = json::parse(texts[rank]);
      for (const auto& [name, count] : of_rank.get_ref<const json::object_t&>())
        counts.try_emplace(name, texts.size()).first->second[rank] = unsigned_in(count, name.c_str(), most);
    });
  }
  for (const auto& [name, by_rank] : counts) {
    std::vector<std::int64_t> bounds{0};
    std::uint64_t holders = 0;
    std::size_t length = 0;
    for (const std::size_t count : by_rank) {
      if (count > 0 && length > 0 && count != length)
        throw MismatchError({Errc::mismatch, fmt::format("ranks have {} and {} elements of '{}'", length, count, name)});
      length = std::max(length, count);
      holders += count > 0 ? 1 : 0;
      bounds.push_back(bounds.back() + static_cast<std::int64_t>(count));
    }
    if (holders == 0) continue;
    const auto mine = own.find(name);
    const TensorView values = mine == own.end() ? TensorView(nullptr, DType::f32, std::size_t{0}) : TensorView(mine->second);
    all.entries.push_back({name, values, Shape{bounds.back()}, bounds});
    all.tensors.push_back({&all.entries.back(), bounds.back(), sizeof(float), holders});
  }
  return all;
}

AddendLoad::AddendLoad(const Exchange& exchange, const Checkpoint& checkpoint, const Manifest& manifest)
    : checkpoint_(checkpoint), rank_(exchange.group().rank()), ranks_(exchange.group().size()) {
  if (checkpoint.addends().empty()) return;
  std::string mine;  // for each of wanted_, whether this rank wants it
  exchange.require_ok(attempt([&] {
    for (const Manifest::Tensor& saved : manifest.tensors)
      for (const auto& [kind, addends] : checkpoint.addends()) {
        if (saved.addends == 0 || !saved.name.starts_with(addend_name(kind, ""))) continue;
        std::string name = saved.name.substr(kind.size() + 1);
        mine += addends->wants(name) ? '1' : '0';
        wanted_.push_back({addends.get(), std::move(name), &saved});
      }
  }));
  if (wanted_.empty()) return;
  const auto answers = exchange.gather(mine);
  for (std::size_t rank = 0; rank < answers.size(); ++rank)
    if (answers[rank].size() != wanted_.size())
      refuse_from(exchange.group(), static_cast<int>(rank), "an answer about addends",
                  fmt::format("it is about {}, where {} were saved", answers[rank].size(), wanted_.size()));
  const bool is_as_saved = manifest.files.size() == answers.size();
  for (std::size_t w = 0; w < wanted_.size(); ++w) {
    Wanted& wanted = wanted_[w];
    wanted.begin = parts_.size();
    for (const Manifest::Piece& piece : wanted.saved->pieces) {
      std::vector<int> takers;
      for (int rank = 0; rank < ranks_; ++rank)
        if (answers[static_cast<std::size_t>(rank)][w] == '1' && (!is_as_saved || rank == piece.file)) takers.push_back(rank);
      if (!takers.empty()) add_part(*wanted.saved, piece, takers);
    }
    wanted.end = parts_.size();
  }
}

/// Cuts what one rank had evenly for the takers.
void AddendLoad::add_part(const Manifest::Tensor& saved, const Manifest::Piece& piece, const std::vector<int>& takers) {
  Part& part = parts_.emplace_back();
  const std::int64_t count = piece.rows.count();
  std::vector<std::int64_t> bounds{0};
  int turn = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool takes = std::binary_search(takers.begin(), takers.end(), rank);
    const auto end = takes ? rows_of(static_cast<std::size_t>(count), static_cast<int>(takers.size()), turn++).end : 0;
    bounds.push_back(std::max(bounds.back(), static_cast<std::int64_t>(end)));
  }
  const auto r = static_cast<std::size_t>(rank_);
  part.first = static_cast<std::size_t>(bounds[r]);
  part.count = static_cast<std::size_t>(bounds[r + 1] - bounds[r]);
  part.entry = {saved.name, {}, Shape{count}, bounds};
  part.placed = {saved.name, saved.dtype, Shape{count}, {{piece.file, {0, count}, piece.offset, piece.length}}};
}

void AddendLoad::append_to(std::vector<GroupTensor>& tensors, std::vector<const Manifest::Tensor*>& placed) const {
  for (const Part& part : parts_) {
    tensors.push_back({&part.entry, part.entry.full_shape[0], sizeof(float)});
    placed.push_back(&part.placed);
  }
}

void AddendLoad::take_memory() {
  for (Part& part : parts_) {
    part.memory.resize(part.count);
    part.entry.values = TensorView(part.memory);
  }
}

void AddendLoad::hand_over() {
  for (const auto& [kind, addends] : checkpoint_.addends()) {
    std::map<std::string, std::vector<float>> values;
    for (const Wanted& wanted : wanted_)
      if (wanted.by == addends.get())
        if (std::vector<float> sum = sum_of(wanted); !sum.empty()) values.emplace(wanted.name, std::move(sum));
    addends->take(std::move(values));
  }
}

/// This rank's elements of the sum, in the order of the ranks that saved, and zeros; empty if it has none. The parts are empty afterwards.
std::vector<float> AddendLoad::sum_of(const Wanted& wanted) {
  std::vector<float> sum;
  for (std::size_t p = wanted.begin; p < wanted.end; ++p) {
    const std::vector<float> own = std::exchange(parts_[p].memory, {});
    if (own.empty()) continue;
    const std::size_t first = parts_[p].first;
    if (sum.empty()) {
      sum.resize(wanted.saved->shape.count() / wanted.saved->addends);
      std::copy(own.begin(), own.end(), sum.begin() + static_cast<std::ptrdiff_t>(first));
    } else {
      for (std::size_t i = 0; i < own.size(); ++i) sum[first + i] += own[i];
    }
  }
  return sum;
}

}  // namespace ringlet::native
