#include "native/elastic/state_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "native/checkpoint/checksum.hpp"
#include "native/checkpoint/flat.hpp"
#include "native/checkpoint/group_tensor.hpp"
#include "native/checkpoint/manifest_json.hpp"

namespace ringlet::native {

namespace {

constexpr std::size_t kStateBlockBytes = 4 << 20;
constexpr std::size_t kBlocksUnderWay = 2;  // of each giver

/// The state's tensors, one behind the other and cut into blocks.
class Blocks {
 public:
  explicit Blocks(const Checkpoint& state) {
    for (const Checkpoint::Entry& entry : state.entries())
      for (std::size_t offset = 0; offset < entry.values.bytes();) {
        if (blocks_.empty() || blocks_.back().bytes == kStateBlockBytes) blocks_.emplace_back();
        Block& block = blocks_.back();
        const std::size_t element = size_of(entry.values.dtype());
        const std::size_t room = (kStateBlockBytes - block.bytes) / element * element;
        if (room == 0) {
          blocks_.emplace_back();
          continue;
        }
        const std::size_t length = std::min(room, entry.values.bytes() - offset);
        block.pieces.push_back({entry.values, offset, length});
        block.bytes += length;
        offset += length;
      }
  }

  std::size_t count() const { return blocks_.size(); }

  std::vector<std::byte> read(std::size_t index) const {
    std::vector<std::byte> bytes(blocks_[index].bytes);
    std::size_t at = 0;
    for (const Piece& piece : blocks_[index].pieces) {
      gather(piece.values, piece.offset, {bytes.data() + at, piece.length});
      at += piece.length;
    }
    return bytes;
  }
  std::vector<std::byte> buffer(std::size_t index) const { return std::vector<std::byte>(blocks_[index].bytes); }
  void write(std::size_t index, std::span<const std::byte> bytes) const {
    for (const Piece& piece : blocks_[index].pieces) {
      scatter(bytes.first(piece.length), piece.values, piece.offset);
      bytes = bytes.subspan(piece.length);
    }
  }

 private:
  struct Piece {
    TensorView values;
    std::size_t offset, length;
  };
  struct Block {
    std::vector<Piece> pieces;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks_;
};

std::string state_checksum(const Checkpoint& state) {
  Checksum checksum;
  std::vector<std::byte> packed;
  for (const Checkpoint::Entry& entry : state.entries()) {
    if (entry.values.contiguous()) {
      checksum.update({entry.values.data(), entry.values.bytes()});
      continue;
    }
    for (std::size_t offset = 0; offset < entry.values.bytes(); offset += packed.size()) {
      packed.resize(std::min(kStateBlockBytes, entry.values.bytes() - offset));
      gather(entry.values, offset, packed);
      checksum.update(packed);
    }
  }
  const std::string values = describe_values(state);
  checksum.update(std::as_bytes(std::span(values)));
  return checksum.hex();
}

TensorView view_of(std::vector<std::byte>& block) { return {block.data(), DType::u8, block.size()}; }

/// A block that is on its way, whose memory the operations borrow.
struct MovingBlock {
  MovingBlock(std::size_t index, std::vector<std::byte> bytes) : block(index), memory(std::move(bytes)) {}
  std::size_t block;
  std::vector<std::byte> memory;
  std::vector<Work> works;  // declared last: its destructor waits
};

void give(const Exchange& exchange, const Blocks& blocks, const HandOver& plan, std::size_t turn) {
  std::deque<MovingBlock> under_way;
  const auto end_oldest = [&] {
    for (Work& work : under_way.front().works) work.wait();
    under_way.pop_front();
  };
  for (std::size_t index = turn; index < blocks.count(); index += plan.givers.size()) {
    if (under_way.size() == kBlocksUnderWay) end_oldest();
    MovingBlock& transfer = under_way.emplace_back(index, blocks.read(index));
    for (const int taker : plan.takers)
      transfer.works.push_back(exchange.group().send_async(view_of(transfer.memory), taker, exchange.call()));
  }
  while (!under_way.empty()) end_oldest();
}

void take(const Exchange& exchange, const Blocks& blocks, const HandOver& plan) {
  std::deque<MovingBlock> under_way;
  const auto end_oldest = [&] {
    MovingBlock& oldest = under_way.front();
    oldest.works.front().wait();
    blocks.write(oldest.block, oldest.memory);
    under_way.pop_front();
  };
  for (std::size_t index = 0; index < blocks.count(); ++index) {
    if (under_way.size() == kBlocksUnderWay * plan.givers.size()) end_oldest();
    MovingBlock& transfer = under_way.emplace_back(index, blocks.buffer(index));
    transfer.works.push_back(exchange.group().recv_async(view_of(transfer.memory), plan.giver_of(index), exchange.call()));
  }
  while (!under_way.empty()) end_oldest();
}

std::map<std::string, CheckpointValue, std::less<>> parse_values(const std::string& text) {
  std::map<std::string, CheckpointValue, std::less<>> values;
  const auto object = nlohmann::json::parse(text);
  for (const auto& [name, value] : object.items()) values.emplace(name, native::value_from_json(name, value));
  return values;
}

std::string values_text(const Checkpoint& state) {
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : state.values()) object[name] = native::to_json(value);
  return object.dump();
}

}  // namespace

HandOver compare(const Exchange& exchange, const Checkpoint& state, const Standing& mine) {
  exchange.require_same(describe_tensors(state));
  const auto checksums = exchange.gather(mine.lacks ? std::string() : state_checksum(state));
  std::vector<std::uint64_t> steps(checksums.size());
  exchange.group().all_gather(std::vector<std::uint64_t>{mine.step}, steps, exchange.call());
  HandOver plan = plan_hand_over(checksums, steps);
  if (plan.checksum.empty()) throw PeerLost({Errc::peer_lost, "all ranks that had the training's state are lost"});
  return plan;
}

void hand_over(const Exchange& exchange, Checkpoint& state, const HandOver& plan) {
  if (plan.takers.empty()) return;
  const int rank = exchange.group().rank();
  const Blocks blocks(state);
  const auto turn = std::find(plan.givers.begin(), plan.givers.end(), rank);
  if (turn != plan.givers.end())
    give(exchange, blocks, plan, static_cast<std::size_t>(turn - plan.givers.begin()));
  else
    take(exchange, blocks, plan);
  const std::string values = exchange.broadcast(values_text(state), plan.givers.front());
  Status outcome;
  if (plan.takes(rank)) {
    state.set_values(parse_values(values));
    if (state_checksum(state) != plan.checksum)
      outcome = {Errc::io_error,
                 fmt::format("the state that came from rank {} and others does not have their checksum", plan.givers.front())};
  }
  exchange.require_ok(outcome);
}

}  // namespace ringlet::native
