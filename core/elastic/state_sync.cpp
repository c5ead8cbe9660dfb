#include "core/elastic/state_sync.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/flat.hpp"
#include "core/engine/group_engine.hpp"
#include "core/engine/requests.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kStateBlockBytes = 4 << 20;
constexpr std::size_t kBlocksUnderWay = 2;  // of each giver
/// Bounds the memory that a peer can make this rank allocate.
constexpr std::uint64_t kMaxValuesBytes = 256 << 20;

}  // namespace

StateSync::StateSync(const GroupEngine& group, Agreements& agreements, const Tree& state, std::string values, const Standing& mine)
    : group_(group),
      agreement_(group, agreements, "the state of an ElasticTrainer", state),
      state_(state),
      values_(std::move(values)),
      mine_(mine) {
  cut_blocks();
}

int StateSync::rank() const { return group_.options().rank; }

/// Cuts the tensors, one behind the other, into blocks.
void StateSync::cut_blocks() {
  for (const Leaf& leaf : state_)
    for (std::size_t offset = 0; offset < leaf.values.bytes();) {
      if (blocks_.empty() || kStateBlockBytes - blocks_.back().bytes < size_of(leaf.values.dtype())) blocks_.emplace_back();
      Block& block = blocks_.back();
      const std::size_t element = size_of(leaf.values.dtype());
      const std::size_t room = (kStateBlockBytes - block.bytes) / element * element;
      const std::size_t length = std::min(room, leaf.values.bytes() - offset);
      block.pieces.push_back({leaf.values, offset, length});
      block.bytes += length;
      offset += length;
    }
}

Checksum::Value StateSync::checksum() const {
  Checksum sum;
  std::vector<std::byte> packed;
  for (const Block& block : blocks_)
    for (const Piece& piece : block.pieces) {
      if (piece.values.contiguous()) {
        sum.update({piece.values.data() + piece.offset, piece.length});
        continue;
      }
      packed.resize(piece.length);
      gather(piece.values, piece.offset, packed);
      sum.update(packed);
    }
  sum.update(std::as_bytes(std::span(values_.data(), values_.size())));
  return sum.value();
}

void StateSync::read(Moving& moving) const {
  std::span<std::byte> bytes = moving.memory;
  for (const Piece& piece : blocks_[moving.block].pieces) {
    gather(piece.values, piece.offset, bytes.first(piece.length));
    bytes = bytes.subspan(piece.length);
  }
}

void StateSync::write(const Moving& moving) const {
  std::span<const std::byte> bytes = moving.memory;
  for (const Piece& piece : blocks_[moving.block].pieces) {
    scatter(bytes.first(piece.length), piece.values, piece.offset);
    bytes = bytes.subspan(piece.length);
  }
}

Procedure::Action StateSync::next() {
  switch (stage_) {
    case Stage::trees: {
      Action action = agreement_.next();
      const auto* done = std::get_if<Done>(&action);
      return done == nullptr || !done->status.ok() ? std::move(action) : tell_standing();
    }
    case Stage::standings:
      return begin_moving();
    case Stage::giving:
      return give();
    case Stage::taking:
      return take();
    case Stage::values_length:
      return tell_values();
    case Stage::values_text:
      return tell_outcome();
    case Stage::outcomes:
      return judge();
    case Stage::end:
      break;
  }
  return Done{};
}

Procedure::Action StateSync::tell_standing() {
  const Checksum::Value sum = mine_.lacks ? Checksum::Value{} : checksum();
  const Told own{mine_.lacks, mine_.step, sum[0], sum[1]};
  told_.resize(static_cast<std::size_t>(group_.options().size));
  told_[static_cast<std::size_t>(rank())] = own;
  stage_ = Stage::standings;
  if (told_.size() == 1) return begin_moving();
  const TensorView all{told_.data(), DType::u64, told_.size() * own.size()};
  const TensorView part{told_.data() + rank(), DType::u64, own.size()};
  return run(for_purpose(Purpose::state, make_all_gather(part, all, group_.options())));
}

Procedure::Action StateSync::begin_moving() {
  const WorldOptions& world = group_.options();
  std::vector<Standing> standings;
  for (const auto& [lacks, step, high, low] : told_) standings.push_back({lacks != 0, step, {high, low}});
  plan_ = plan_hand_over(standings, static_cast<std::size_t>(world.size - world.guests));
  if (plan_.givers.empty()) return Done{{Errc::peer_lost, "all ranks that had the training's state are lost"}};
  if (plan_.takers.empty()) {
    stage_ = Stage::end;
    return Done{};
  }
  if (takes()) {
    stage_ = Stage::taking;
    return take();
  }
  const auto turn = std::find(plan_.givers.begin(), plan_.givers.end(), rank());
  next_block_ = turn == plan_.givers.end() ? blocks_.size() : static_cast<std::size_t>(turn - plan_.givers.begin());
  stage_ = Stage::giving;
  return give();
}

Procedure::Action StateSync::wait_for_oldest() {
  awaits_oldest_ = true;
  return WaitForOldest{};
}

Procedure::Action StateSync::give() {
  if (std::exchange(awaits_oldest_, false) && --moving_.front().messages == 0) moving_.pop_front();
  if (next_block_ < blocks_.size()) {
    if (next_taker_ == 0) {
      if (moving_.size() == kBlocksUnderWay) return wait_for_oldest();
      moving_.push_back({next_block_, std::vector<std::byte>(blocks_[next_block_].bytes), plan_.takers.size()});
      read(moving_.back());
    }
    const int taker = plan_.takers[next_taker_];
    if (++next_taker_ == plan_.takers.size()) {
      next_taker_ = 0;
      next_block_ += plan_.givers.size();
    }
    return send(make_send(moving_.back().view(), taker, group_.options()));
  }
  return moving_.empty() ? tell_length() : wait_for_oldest();
}

Procedure::Action StateSync::take() {
  if (std::exchange(awaits_oldest_, false)) {
    write(moving_.front());
    moving_.pop_front();
  }
  if (next_block_ < blocks_.size() && moving_.size() < kBlocksUnderWay * plan_.givers.size()) {
    moving_.push_back({next_block_, std::vector<std::byte>(blocks_[next_block_].bytes), 1});
    const int giver = plan_.giver_of(next_block_++);
    return receive(make_receive(moving_.back().view(), giver, group_.options()));
  }
  return moving_.empty() ? tell_length() : wait_for_oldest();
}

Procedure::Action StateSync::tell_length() {
  stage_ = Stage::values_length;
  length_ = values_.size();
  return run(for_purpose(Purpose::state, make_broadcast(std::span(&length_, 1), plan_.givers.front(), group_.options())));
}

Procedure::Action StateSync::tell_values() {
  if (length_ > kMaxValuesBytes)
    return Done{
        {Errc::protocol_error, "the values of the training's state have " + std::to_string(length_) + " bytes", plan_.givers.front()}};
  values_.resize(static_cast<std::size_t>(length_));
  stage_ = Stage::values_text;
  return run(for_purpose(Purpose::state,
                         make_broadcast(TensorView(values_.data(), DType::u8, values_.size()), plan_.givers.front(), group_.options())));
}

Procedure::Action StateSync::tell_outcome() {
  failures_.resize(told_.size());
  std::uint64_t& own = failures_[static_cast<std::size_t>(rank())];
  own = takes() && checksum() != plan_.checksum ? 1 : 0;
  stage_ = Stage::outcomes;
  return run(for_purpose(Purpose::state, make_all_gather(std::span<const std::uint64_t>(&own, 1), failures_, group_.options())));
}

Procedure::Action StateSync::judge() const {
  const int natives = group_.options().size - group_.options().guests;
  for (int place = 0; place < group_.options().size; ++place)
    if (failures_[static_cast<std::size_t>(place)] != 0 && (place < natives || place == rank()))
      return Done{{Errc::io_error,
                   "the state that rank " + std::to_string(place) + " got from rank " + std::to_string(plan_.givers.front()) +
                       " and others does not have their checksum",
                   place}};
  return Done{};
}

}  // namespace ringlet
