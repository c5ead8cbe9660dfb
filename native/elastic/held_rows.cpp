#include "native/elastic/held_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/base/flat.hpp"
#include "core/base/refuse.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

namespace {

constexpr std::size_t kRowBlockBytes = 4 << 20;
constexpr std::size_t kRowBlocksUnderWay = 8;
constexpr std::size_t kGradientAlignment = 64;

std::string_view host_of(std::string_view address) { return address.substr(0, address.rfind(':')); }

/// The lowest rank of this rank's machine. Ranks of one machine see each other at one address, or in memory.
int machine_of(const Group& group) {
  int machine = group.rank();
  for (const LinkInfo& link : group.link_info())
    if (link.medium == "memory" || host_of(link.own_address) == host_of(link.peer_address)) machine = std::min(machine, link.peer);
  return machine;
}

/// Where `rows` of a tensor begin in memory that begins with the row `first`.
std::size_t offset_in(const Shape& full, RowRange rows, std::int64_t first, std::size_t element) {
  const std::int64_t all = full.axes() == 0 ? 1 : full[0];
  return all == 0 ? 0 : full.count() / static_cast<std::size_t>(all) * element * static_cast<std::size_t>(rows.begin - first);
}

std::size_t bytes_of(const Shape& full, RowRange rows, std::size_t element) {
  return offset_in(full, {rows.end, rows.end}, rows.begin, element);
}

/// The bytes of a move of one tensor: those that are read, where this rank is the source, and those that are written, where it is the
/// target.
struct RowBytes {
  const TensorView* from;
  std::size_t from_offset;
  const TensorView* to;
  std::size_t to_offset;
  std::size_t count;
};

/// Moves rows between ranks in blocks. All ranks keep to one common order, so ranks never wait in a circle.
class RowCourier {
 public:
  explicit RowCourier(const Exchange& exchange) : exchange_(exchange), rank_(exchange.group().rank()) {}

  /// This rank is source, target or both.
  void move(const RowMove& move, const RowBytes& rows) {
    for (std::size_t done = 0; done < rows.count; done += kRowBlockBytes) {
      if (under_way_.size() == kRowBlocksUnderWay) finish_oldest();
      Block block{rows.to, rows.to_offset + done, std::vector<std::byte>(std::min(kRowBlockBytes, rows.count - done)), {}};
      if (move.source == rank_) gather(*rows.from, rows.from_offset + done, block.bytes);
      if (move.source == move.target) {
        scatter(block.bytes, *block.to, block.offset);
        continue;
      }
      const TensorView view(block.bytes.data(), DType::u8, block.bytes.size());
      Group& group = exchange_.group();
      Block& next = under_way_.emplace_back(std::move(block));
      if (move.source == rank_) {
        next.work = group.send_async(view, move.target, exchange_.call());
      } else {
        next.work = group.recv_async(view, move.source, exchange_.call());
      }
    }
  }
  void finish() {
    while (!under_way_.empty()) finish_oldest();
  }

 private:
  struct Block {
    const TensorView* to;
    std::size_t offset;
    std::vector<std::byte> bytes;
    Work work;  // declared last: its destructor waits
  };
  void finish_oldest() {
    Block& oldest = under_way_.front();
    oldest.work.wait();
    if (oldest.to != nullptr) scatter(oldest.bytes, *oldest.to, oldest.offset);
    under_way_.pop_front();
  }

  const Exchange& exchange_;
  const int rank_;
  std::deque<Block> under_way_;
};

/// A tensor whose rows move with those of a parameter: the parameter, or a slot of the optimizer's state.
struct RowTensor {
  std::size_t parameter;       // its position in the outline
  std::vector<TensorView> at;  // by place
};

std::vector<RowTensor> row_tensors(const Tree& outline, std::vector<HeldPart>& parts, bool with_parameters) {
  std::vector<RowTensor> tensors;
  const auto add = [&](const Tree& tree, std::size_t place, std::size_t first, const auto& parameter_of) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      if (place == 0) tensors.push_back({outline.index_of(parameter_of(tree[i].name)), {}});
      tensors[first + i].at.push_back(tree[i].values);
    }
  };
  const std::size_t parameters = with_parameters ? outline.size() : 0;
  for (std::size_t place = 0; place < parts.size() && parts[place].shard >= 0; ++place) {
    if (with_parameters) add(parts[place].parameters, place, 0, [](const std::string& name) { return name; });
    add(parts[place].optimizer->state(), place, parameters, [](const std::string& name) { return name.substr(0, name.rfind('.')); });
  }
  return tensors;
}

}  // namespace

/// What a rank tells the others when a world begins.
struct HeldRows::Told {
  std::int64_t generation;
  std::uint64_t step;
  int rank;  // in the world of its rows
  bool is_whole;
  double weight;  // in this world
  int machine;
  RowSpread spread;

  std::string text() const {
    return nlohmann::json{generation, step, rank, is_whole, weight, machine, spread.weights(), spread.machines(), spread.copies()}.dump();
  }
  static Told parse(const std::string& text) {
    const auto json = nlohmann::json::parse(text);
    auto weights = json.at(6).get<std::vector<double>>();
    auto machines = json.at(7).get<std::vector<int>>();
    const int rank = json.at(2).get<int>();
    if (weights.size() != machines.size() || rank < 0 || static_cast<std::size_t>(rank) >= weights.size())
      throw MismatchError({Errc::mismatch, "what a rank says of its rows does not fit together: it runs another build"});
    return {json.at(0).get<std::int64_t>(),
            json.at(1).get<std::uint64_t>(),
            rank,
            json.at(3).get<bool>(),
            json.at(4).get<double>(),
            json.at(5).get<int>(),
            RowSpread(std::move(weights), std::move(machines), json.at(8).get<int>())};
  }
  bool is_older_than(const Told& other) const { return std::pair(generation, step) < std::pair(other.generation, other.step); }
};

namespace {

RowSpread first_spread(int ranks, int copies) {
  std::vector<int> machines(static_cast<std::size_t>(ranks));
  std::iota(machines.begin(), machines.end(), 0);
  return {std::vector<double>(machines.size(), 1.0), machines, copies};
}

}  // namespace

HeldRows::HeldRows(const Group& world, Make make, const HeldRowsOptions& options)
    : group_(world),
      make_(std::move(make)),
      options_(options),
      spread_(first_spread(world.size(), options.copies)),
      rank_(world.rank()),
      generation_(world.shared().has_joined() ? -1 : 0) {
  if (!make_) refuse("the function that makes the optimizer is empty");
  if (options.copies < 1 || options.copies > 2) refuse(fmt::format("copies is {}; 1 or 2 are possible", options.copies));
  if (!std::isfinite(options.weight) || options.weight < 0)
    refuse(fmt::format("shard_weight is {}; it must be finite and not negative", options.weight));
  parts_ = make_parts(spread_, rank_);
}

void HeldRows::view(const Tree& full) {
  full_ = full;
  outline_ = full;
  parts_ = make_parts(spread_, rank_);
}

void HeldRows::copy_rows(const Tree& full) {
  const ShardLayout layout = spread_.layout(full);
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
std::string HeldRows::describe() {
  std::string text = fmt::format("{} copies of rows\n", options_.copies);
  for (const Leaf& leaf : outline_)
    text += fmt::format("the parameter '{}' {} {}\n", leaf.name, name_of(leaf.values.dtype()), to_string(leaf.values.shape()));
  for (const Leaf& leaf : parts_.front().optimizer->state())
    text += fmt::format("the slot '{}' {}\n", leaf.name, name_of(leaf.values.dtype()));
  return text;
}

std::string HeldRows::enter(Group world) {
  const Exchange exchange(world, call());
  make_optimizers(parts_, step_);
  exchange.require_same(describe());
  const Told mine{generation_, step_, rank_, are_whole_, options_.weight, machine_of(world), spread_};
  std::vector<Told> all;
  for (const std::string& text : exchange.gather(mine.text())) all.push_back(Told::parse(text));
  const Told& newest = *std::max_element(all.begin(), all.end(), [](const Told& a, const Told& b) { return a.is_older_than(b); });
  const bool some_have_rows = newest.generation >= 0;

  std::vector<double> weights;
  std::vector<int> machines;
  std::vector<int> now(static_cast<std::size_t>(newest.spread.ranks()), -1);
  bool none_moves = newest.spread.ranks() == world.size(), all_are_whole = true;
  for (int number = 0; number < world.size(); ++number) {
    const Told& rank = all[static_cast<std::size_t>(number)];
    weights.push_back(rank.weight);
    machines.push_back(rank.machine);
    const bool has_rows = some_have_rows && !rank.is_older_than(newest);
    if (has_rows) now[static_cast<std::size_t>(rank.rank)] = number;
    none_moves = none_moves && has_rows && rank.rank == number;
    all_are_whole = all_are_whole && has_rows && rank.is_whole;
  }
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; }))
    refuse("the shard_weight of all ranks is 0; at least one must be positive");
  const RowSpread after(std::move(weights), std::move(machines), options_.copies);
  // At the very beginning the ranks have what they computed themselves, which may differ between machines.
  const RowSource preferred = newest.generation > 0 ? RowSource::own : RowSource::first;
  if (none_moves && preferred == RowSource::own && after == newest.spread && (all_are_whole || full_.empty())) {
    group_ = std::move(world);
    has_gradients_ = false;
    return {};
  }

  std::string lost = "all rows";
  std::optional<std::vector<RowMove>> moves;
  if (some_have_rows) moves = plan_row_moves(outline_, newest.spread, now, after, preferred, lost);
  const RowSpread spread = moves ? after : after.first_holders();
  std::vector<HeldPart> parts = make_parts(spread, world.rank());
  make_optimizers(parts, newest.step);
  if (moves) {
    spread_ = newest.spread;
    move_rows(exchange, *moves, spread, parts, full_.empty() || !all_are_whole);
    // All ranks have their new rows, or all keep the old ones.
    if (world.elastic() && !world.agree(true)) world.barrier();
    step_ = newest.step;
    are_whole_ = all_are_whole;
  }
  generation_ = moves ? newest.generation + 1 : -1;
  take(std::move(world), spread, std::move(parts));
  return moves ? std::string() : lost;
}

void HeldRows::move_rows(const Exchange& exchange, const std::vector<RowMove>& moves, const RowSpread& after, std::vector<HeldPart>& parts,
                         bool with_parameters) {
  const ShardLayout layout_before = layout(), layout_after = after.layout(outline_);
  const std::vector<RowTensor> from = row_tensors(outline_, parts_, with_parameters);
  const std::vector<RowTensor> to = row_tensors(outline_, parts, with_parameters);
  const int rank = exchange.group().rank();
  RowCourier courier(exchange);
  for (std::size_t t = 0; t < to.size(); ++t)
    for (const RowMove& move : moves) {
      if (move.tensor != to[t].parameter || (move.source != rank && move.target != rank)) continue;
      const auto& [name, values] = outline_[move.tensor];
      const std::size_t element = size_of(to[t].at.front().dtype());
      const auto source = static_cast<std::size_t>(move.source_place), target = static_cast<std::size_t>(move.target_place);
      RowBytes bytes{nullptr, 0, nullptr, 0, bytes_of(values.shape(), move.rows, element)};
      if (move.source == rank) {
        bytes.from = &from[t].at[source];
        bytes.from_offset = offset_in(values.shape(), move.rows, layout_before.rows(name, parts_[source].shard).begin, element);
      }
      if (move.target == rank) {
        bytes.to = &to[t].at[target];
        bytes.to_offset = offset_in(values.shape(), move.rows, layout_after.rows(name, parts[target].shard).begin, element);
      }
      courier.move(move, bytes);
    }
  courier.finish();
}

void HeldRows::take(Group world, RowSpread spread, std::vector<HeldPart> parts) {
  group_ = std::move(world);
  rank_ = group_.rank();
  spread_ = std::move(spread);
  parts_ = std::move(parts);
  has_gradients_ = false;
}

void HeldRows::loaded(std::uint64_t step) {
  // What the second holders have is older.
  spread_ = spread_.first_holders();
  parts_.resize(1);
  parts_.front().optimizer->set_step(step);
  step_ = step;
  generation_ = std::max<std::int64_t>(generation_, 0);
  are_whole_ = true;
}

void HeldRows::make_gradients(const Tree& full) {
  const ShardLayout rows = layout();
  for (HeldPart& part : parts_) {
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

void HeldRows::exchange_gradients() {
  std::vector<Work> works;
  if (const int second = spread_.holder(rank_, 1); second >= 0)
    works.push_back(group_.send_async(parts_[0].gradient_memory.view(), second, call()));
  if (parts_.size() > 1 && parts_[1].shard >= 0)
    works.push_back(group_.recv_async(parts_[1].gradient_memory.view(), parts_[1].shard, call()));
  for (Work& work : works) work.wait();
  has_gradients_ = true;
}

void HeldRows::update() {
  if (!std::exchange(has_gradients_, false)) refuse("update() of elastic shards before their gradients are averaged");
  for (HeldPart& part : parts_)
    if (part.shard >= 0) part.optimizer->apply_gradients(part.gradients, part.parameters);
  ++step_;
  are_whole_ = group_.size() == 1;
}

std::size_t HeldRows::state_bytes() const {
  std::size_t bytes = 0;
  for (const HeldPart& part : parts_)
    if (part.optimizer) bytes += part.optimizer->state_bytes();
  return bytes;
}

std::size_t HeldRows::parameter_bytes() const {
  std::size_t bytes = 0;
  for (const HeldPart& part : parts_) bytes += part.parameters.bytes();
  return bytes;
}

}  // namespace ringlet::native
