#include "native/elastic/held_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ringlet/error.hpp>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/engine/peers.hpp"
#include "native/checkpoint/exchange.hpp"
#include "native/elastic/row_tensors.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

namespace {

constexpr std::size_t kGradientAlignment = 64;

/// The lowest rank of this rank's machine. Ranks of one machine see each other at one address, or in memory.
int machine_of(const Group& group) {
  int machine = group.rank();
  for (const LinkInfo& link : group.link_info())
    if (is_inside_machine(link.medium, link.own_address, link.peer_address)) machine = std::min(machine, link.peer);
  return machine;
}

}  // namespace

HeldRows::HeldRows(const Group& world, Make make, const HeldRowsOptions& options)
    : group_(world),
      make_(std::move(make)),
      options_(options),
      holdings_(world.size(), world.rank(), options.copies, !world.shared().has_joined()) {
  if (!make_) refuse("the function that makes the optimizer is empty");
  if (options.copies < 1 || options.copies > 2) refuse(fmt::format("copies is {}; 1 or 2 are possible", options.copies));
  if (!std::isfinite(options.weight) || options.weight < 0)
    refuse(fmt::format("shard_weight is {}; it must be finite and not negative", options.weight));
  if (options.rebuild_size < 1) refuse(fmt::format("rebuild_size is {}; it must be positive", options.rebuild_size));
  parts_ = make_parts(holdings_.held().spread, holdings_.held().rank);
}

void HeldRows::view(const Tree& full) {
  full_ = full;
  outline_ = full;
  parts_ = make_parts(holdings_.held().spread, holdings_.held().rank);
}

void HeldRows::copy_rows(const Tree& full) {
  const ShardLayout layout = holdings_.held().spread.layout(full);
  for (HeldPart& part : parts_) {
    if (part.shard < 0) continue;
    for (const Leaf& rows : layout.shard(full, part.shard)) {
      part.memory.push_back(Tensor::copy_of(rows.values));
      part.parameters.add(rows.name, part.memory.back().view());
    }
  }
  for (const auto& [name, values] : full) outline_.add(name, TensorView(nullptr, values.dtype(), values.shape()));
}

std::vector<HeldPart> HeldRows::make_parts(const RowSpread& spread, int rank) const {
  const ShardLayout layout = spread.layout(outline_);
  std::vector<HeldPart> parts(static_cast<std::size_t>(spread.copies()));
  for (std::size_t place = 0; place < parts.size(); ++place) {
    HeldPart& part = parts[place];
    part.shard = spread.shard_at(rank, static_cast<int>(place));
    if (part.shard < 0) continue;
    if (!full_.empty()) {
      part.parameters = layout.shard(full_, part.shard);
      continue;
    }
    part.parameters = outline_.map([&](const std::string& name, const TensorView& values) {
      part.memory.emplace_back(values.dtype(), layout.shard_shape(name, part.shard));
      return part.memory.back().view();
    });
  }
  return parts;
}

void HeldRows::make_optimizers(std::vector<HeldPart>& parts, std::uint64_t step) const {
  for (HeldPart& part : parts) {
    if (part.shard < 0 || part.optimizer) continue;
    part.optimizer = make_();
    if (!part.optimizer) refuse("the function that makes the optimizer has returned null");
    part.optimizer->init(part.parameters);
    part.optimizer->set_step(step);
  }
}

/// What must be the same on all ranks, with one line per tensor.
std::string HeldRows::describe(std::string_view settings) {
  std::string text = fmt::format("copies {}\nrebuild_size {}\n{}", options_.copies, options_.rebuild_size, settings);
  for (const Leaf& leaf : outline_)
    text += fmt::format("the parameter '{}' {} {}\n", leaf.name, name_of(leaf.values.dtype()), to_string(leaf.values.shape()));
  for (const Leaf& leaf : parts_.front().optimizer->state())
    text += fmt::format("the slot '{}' {}\n", leaf.name, name_of(leaf.values.dtype()));
  return text;
}

/// What every rank of the world has of the rows.
std::vector<RowStanding> HeldRows::tell(Group& world, std::string_view settings) {
  const Exchange exchange(world, call());
  make_optimizers(parts_, step_);
  exchange.require_same("sharded states", describe(settings));
  const RowStanding mine{holdings_.held(), step_, are_whole_, options_.weight, machine_of(world)};
  std::vector<RowStanding> told;
  for (const std::string& text : exchange.gather(mine.text())) {
    auto one = RowStanding::parse(text, outline_.size());
    if (!one) throw MismatchError({Errc::mismatch, "what a rank says of its rows does not fit together: it runs another build"});
    told.push_back(std::move(*one));
  }
  if (std::all_of(told.begin(), told.end(), [](const RowStanding& rank) { return rank.weight == 0; }))
    refuse("the shard_weight of all ranks is 0; at least one must be positive");
  return told;
}

std::string HeldRows::enter(Group world, std::string_view settings) {
  transfers_.drop();
  is_moving_ = has_gradients_ = false;
  holdings_.drop_coming();
  next_parts_.clear();
  RowEntry entry = plan_row_entry(outline_, tell(world, settings), world.rank(), options_.copies, !full_.empty());
  std::vector<HeldPart> parts;
  if (entry.next) {
    parts = make_parts(entry.next->spread, world.rank());
    make_optimizers(parts, entry.step);
    // Both holders of a row compute its update.
    Exchange(world, call())
        .require_same("optimizers", fmt::format("the learning rate {} at step {}", parts.front().optimizer->learning_rate(), entry.step));
  }
  group_ = world;
  const RowEntry::Outcome outcome = entry.outcome;
  const bool is_fresh = entry.is_fresh;
  std::string lost = std::move(entry.lost);
  if (outcome == RowEntry::Outcome::moves) {
    step_ = entry.step;
    are_whole_ = entry.are_whole;
  }
  holdings_.enter(std::move(entry));
  if (outcome == RowEntry::Outcome::lost) parts_ = std::move(parts);
  if (outcome != RowEntry::Outcome::moves) return lost;
  next_parts_ = std::move(parts);
  const bool parameters_move = full_.empty() || !are_whole_;
  if (is_fresh) {
    start(holdings_.moves_to_first(), parameters_move ? RowContents::both : RowContents::state);
    transfers_.wait();
    // All ranks have their new rows, or all keep the old ones.
    if (world.elastic() && !world.agree(true)) world.barrier();
    take();
    return {};
  }
  for (HeldPart& part : parts_) {
    part.gradients = Tree();
    part.gradient_memory = Tensor();
  }
  // The step's computation needs parameters; the state is needed at its end.
  if (parameters_move) {
    start(holdings_.moves_to_first(), RowContents::parameters);
    transfers_.wait();
  }
  return {};
}

/// Takes the rows that have come.
void HeldRows::take() {
  if (holdings_.are_coming()) parts_ = std::move(next_parts_);
  next_parts_.clear();
  holdings_.take();
}

void HeldRows::start_moves() {
  if (std::exchange(is_moving_, true)) return;
  const std::vector<RowMove> to_second = holdings_.take_moves_to_second(row_bytes(), static_cast<std::size_t>(options_.rebuild_size));
  if (holdings_.are_coming()) start(holdings_.moves_to_first(), RowContents::state);
  start(to_second, full_.empty() ? RowContents::both : RowContents::state);
}

/// Starts moves from the rows that this rank has to those that it is to have.
void HeldRows::start(const std::vector<RowMove>& moves, RowContents contents) {
  // Who has no rows that count is nobody's source, so it may not know their spread.
  const ShardLayout layout_before = holdings_.held().spread.layout(outline_), layout_after = layout();
  const std::vector<RowTensor> from = row_tensors(outline_, parts_, contents), to = row_tensors(outline_, parts(), contents);
  const int rank = group_.rank();
  std::vector<RowBytes> all;
  for (std::size_t t = 0; t < to.size(); ++t)
    for (const RowMove& move : moves) {
      if (move.tensor != to[t].parameter || (move.source != rank && move.target != rank)) continue;
      const auto& [name, values] = outline_[move.tensor];
      const std::size_t element = size_of(to[t].at.front().dtype());
      const auto source = static_cast<std::size_t>(move.source_place), target = static_cast<std::size_t>(move.target_place);
      RowBytes bytes{nullptr, 0, nullptr, 0, bytes_of(values.shape(), move.rows, element), -1};
      if (move.source == rank) {
        bytes.from = &from[t].at[source];
        bytes.from_offset = offset_in(values.shape(), move.rows, layout_before.rows(name, parts_[source].shard).begin, element);
      }
      if (move.target == rank) {
        bytes.to = &to[t].at[target];
        bytes.to_offset = offset_in(values.shape(), move.rows, layout_after.rows(name, parts()[target].shard).begin, element);
      }
      if (move.source != move.target) bytes.peer = move.source == rank ? move.target : move.source;
      all.push_back(bytes);
    }
  transfers_.start(group_, call(), all);
}

void HeldRows::finish_moves() {
  if (holdings_.are_coming()) start_moves();
  transfers_.wait();
}

void HeldRows::loaded(std::uint64_t step) {
  if (holdings_.are_coming()) parts_ = std::move(next_parts_);
  next_parts_.clear();
  holdings_.loaded();
  parts_.resize(1);
  parts_.front().optimizer->set_step(step);
  step_ = step;
  are_whole_ = true;
}

void HeldRows::make_gradients(const Tree& full) {
  const ShardLayout rows = layout();
  for (HeldPart& part : parts()) {
    if (part.shard < 0 || !part.gradients.empty()) continue;
    std::size_t bytes = 0;
    std::vector<std::size_t> offsets;
    for (const auto& [name, values] : full) {
      offsets.push_back(bytes);
      bytes += (rows.shard_shape(name, part.shard).count() * size_of(values.dtype()) + kGradientAlignment - 1) / kGradientAlignment *
               kGradientAlignment;
    }
    part.gradient_memory = Tensor(DType::u8, Shape{static_cast<std::int64_t>(bytes)});
    std::size_t next = 0;
    part.gradients = full.map([&](const std::string& name, const TensorView& values) {
      return TensorView(part.gradient_memory.view().data() + offsets[next++], values.dtype(), rows.shard_shape(name, part.shard));
    });
  }
}

/// The gradients of those rows of a part that its second holder has, in as few pieces of the part's memory as possible.
std::vector<TensorView> HeldRows::gradients_at_second(HeldPart& part, const std::vector<RowMove>& missing) {
  const ShardLayout rows = layout();
  std::byte* const memory = part.gradient_memory.view().data();
  std::vector<std::pair<std::size_t, std::size_t>> pieces;  // where they begin and end
  for (const auto& [name, values] : part.gradients) {
    const std::size_t tensor = outline_.index_of(name), element = size_of(values.dtype());
    const RowRange all = rows.rows(name, part.shard);
    for (const auto& [range, at_second] : divide_rows(missing, tensor, spread().holder(part.shard, 1), all)) {
      if (!at_second) continue;
      const std::size_t begin =
          static_cast<std::size_t>(values.data() - memory) + offset_in(outline_[tensor].values.shape(), range, all.begin, element);
      const std::size_t end = begin + bytes_of(outline_[tensor].values.shape(), range, element);
      if (!pieces.empty() && begin - pieces.back().second < kGradientAlignment)
        pieces.back().second = end;
      else
        pieces.emplace_back(begin, end);
    }
  }
  std::vector<TensorView> views;
  for (const auto& [begin, end] : pieces) views.emplace_back(memory + begin, DType::u8, end - begin);
  return views;
}

void HeldRows::exchange_gradients() {
  start_moves();
  transfers_.wait();
  std::vector<HeldPart>& held = parts();
  std::vector<Work> works;
  if (const int second = spread().holder(group_.rank(), 1); second >= 0)
    for (const TensorView& piece : gradients_at_second(held[0], holdings_.missing_afterwards()))
      works.push_back(group_.send_async(piece, second, call()));
  if (held.size() > 1 && held[1].shard >= 0)
    for (const TensorView& piece : gradients_at_second(held[1], holdings_.missing_afterwards()))
      works.push_back(group_.recv_async(piece, held[1].shard, call()));
  for (Work& work : works) work.wait();
  has_gradients_ = true;
}

void HeldRows::update() {
  if (!std::exchange(has_gradients_, false)) refuse("update() of elastic shards before their gradients are averaged");
  is_moving_ = false;
  take();
  for (std::size_t place = 0; place < parts_.size(); ++place) {
    HeldPart& part = parts_[place];
    if (part.shard < 0) continue;
    const Tree gradients = place == 0 ? part.gradients : with_rows(part);
    if (gradients.empty())
      part.optimizer->set_step(step_ + 1);
    else
      part.optimizer->apply_gradients(gradients, part.parameters);
  }
  ++step_;
  are_whole_ = group_.size() == 1;
}

/// The gradients of the tensors of which a second holder has rows. Rows that are missing are updated with them, to no effect: they are
/// replaced when they come, and full parameters by those of the first holder.
Tree HeldRows::with_rows(const HeldPart& part) const {
  const RowHolding& held = holdings_.held();
  if (held.missing.empty()) return part.gradients;
  const ShardLayout rows = layout();
  Tree some;
  for (const auto& [name, values] : part.gradients) {
    const auto divided = divide_rows(held.missing, outline_.index_of(name), held.rank, rows.rows(name, part.shard));
    if (std::any_of(divided.begin(), divided.end(), [](const ShardRows& range) { return range.at_second; })) some.add(name, values);
  }
  return some;
}

std::vector<std::size_t> HeldRows::row_bytes() {
  std::vector<std::size_t> bytes(outline_.size());
  for (const RowTensor& tensor : row_tensors(outline_, parts(), full_.empty() ? RowContents::both : RowContents::state))
    bytes[tensor.parameter] += bytes_of(outline_[tensor.parameter].values.shape(), {0, 1}, size_of(tensor.at.front().dtype()));
  return bytes;
}

std::size_t HeldRows::bytes_to_rebuild() {
  const std::vector<RowMove>& missing = holdings_.current().missing;
  if (missing.empty()) return 0;
  const std::vector<std::size_t> of_row = row_bytes();
  std::size_t bytes = 0;
  for (const RowMove& move : missing) bytes += of_row[move.tensor] * static_cast<std::size_t>(move.rows.count());
  return bytes;
}

std::size_t HeldRows::state_bytes() const {
  std::size_t bytes = 0;
  for (const std::vector<HeldPart>* parts : {&parts_, &next_parts_})
    for (const HeldPart& part : *parts)
      if (part.optimizer) bytes += part.optimizer->state_bytes();
  return bytes;
}

std::size_t HeldRows::parameter_bytes() const {
  std::size_t bytes = 0;
  for (const HeldPart& part : parts()) bytes += part.parameters.bytes();
  return bytes;
}

}  // namespace ringlet::native
