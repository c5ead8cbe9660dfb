#include "native/checkpoint/addends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/plan/part_layout.hpp"

namespace ringlet::native {

namespace {

using nlohmann::json;

std::string full_name(const std::string& kind, const std::string& name) { return fmt::format("{}.{}", kind, name); }

}  // namespace

GroupAddends gather_addends(const Exchange& exchange, const Checkpoint& checkpoint) {
  GroupAddends all;
  if (checkpoint.addends().empty()) return all;
  std::map<std::string, std::span<float>> own;
  json told = json::object();
  for (const auto& [kind, addends] : checkpoint.addends())
    for (const auto& [name, values] : addends->own()) {
      own.emplace(full_name(kind, name), values);
      told[full_name(kind, name)] = values.size();
    }
  const auto texts = exchange.gather(told.dump());
  std::map<std::string, std::vector<std::size_t>> counts;  // by rank
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const json of_rank = json::parse(texts[rank]);
    for (const auto& [name, count] : of_rank.items()) counts.try_emplace(name, texts.size()).first->second[rank] = count.get<std::size_t>();
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
    const auto mine = own.find(name);
    const TensorView values = mine == own.end() ? TensorView(nullptr, DType::f32, std::size_t{0}) : TensorView(mine->second);
    all.entries.push_back({name, values, Shape{bounds.back()}, bounds});
    all.tensors.push_back({&all.entries.back(), bounds.back(), sizeof(float), holders});
  }
  return all;
}

AddendLoad::AddendLoad(const Checkpoint& checkpoint, const Manifest& manifest, int rank, int ranks)
    : checkpoint_(checkpoint), rank_(rank), ranks_(ranks), gets_own_(manifest.files.size() == static_cast<std::size_t>(ranks)) {
  for (const Manifest::Tensor& saved : manifest.tensors) {
    if (saved.addends == 0) continue;
    for (const auto& [kind, addends] : checkpoint.addends())
      if (saved.name.starts_with(kind + ".")) add(saved, addends, saved.name.substr(kind.size() + 1));
  }
}

void AddendLoad::add(const Manifest::Tensor& saved, const std::shared_ptr<detail::Addends>& by, std::string name) {
  const std::size_t begin = parts_.size();
  for (const Manifest::Piece& piece : saved.pieces) add_part(saved, piece);
  wanted_.push_back({by, std::move(name), saved.shape.count() / saved.addends, begin, parts_.size()});
}

void AddendLoad::add_part(const Manifest::Tensor& saved, const Manifest::Piece& piece) {
  Part& part = parts_.emplace_back();
  const std::int64_t count = piece.rows.count();
  std::vector<std::int64_t> bounds{0};
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::int64_t even = static_cast<std::int64_t>(rows_of(static_cast<std::size_t>(count), ranks_, rank).end);
    bounds.push_back(gets_own_ ? (rank < piece.file ? 0 : count) : even);
  }
  const auto r = static_cast<std::size_t>(rank_);
  part.first = static_cast<std::size_t>(bounds[r]);
  part.memory.resize(static_cast<std::size_t>(bounds[r + 1] - bounds[r]));
  part.entry = {saved.name, TensorView(part.memory), Shape{count}, bounds};
  part.placed = {saved.name, saved.dtype, Shape{count}, {{piece.file, {0, count}, piece.offset, piece.length}}};
}

void AddendLoad::append_to(std::vector<GroupTensor>& tensors, std::vector<const Manifest::Tensor*>& placed) const {
  for (const Part& part : parts_) {
    tensors.push_back({&part.entry, part.entry.full_shape[0], sizeof(float)});
    placed.push_back(&part.placed);
  }
}

void AddendLoad::hand_over() {
  for (const auto& [kind, addends] : checkpoint_.addends()) {
    std::map<std::string, std::vector<float>> values;
    for (const Wanted& wanted : wanted_) {
      if (wanted.by != addends) continue;
      std::vector<float> sum;
      for (std::size_t p = wanted.begin; p < wanted.end; ++p) {
        const Part& part = parts_[p];
        if (part.memory.empty()) continue;
        const bool is_first = sum.empty();
        sum.resize(wanted.count);
        for (std::size_t i = 0; i < part.memory.size(); ++i) {
          float& element = sum[part.first + i];
          element = is_first ? part.memory[i] : element + part.memory[i];
        }
      }
      if (!sum.empty()) values.emplace(wanted.name, std::move(sum));
    }
    addends->take(std::move(values));
  }
}

}  // namespace ringlet::native
