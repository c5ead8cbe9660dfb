#include "native/checkpoint/transfer.hpp"

#include <deque>
#include <map>

#include "core/base/flat.hpp"
#include "native/checkpoint/file.hpp"

namespace ringlet::native {

namespace {

constexpr std::size_t kInFlight = 8;

/// Works on a rank's transfers in their order, at most kInFlight at a time. All ranks keep to one common order, so the first transfer that
/// is not over is under way on both its ranks, and ranks never wait in a circle.
class Mover {
 public:
  Mover(const Exchange& exchange, const std::vector<GroupTensor>& tensors, const Found& found)
      : exchange_(exchange), tensors_(tensors), found_(found), rank_(exchange.group().rank()) {}

  void run(const std::vector<Transfer>& transfers) {
    for (const Transfer& transfer : transfers) {
      if (transfer.source == transfer.target)
        note(attempt([&] { read_own(transfer); }));
      else if (transfer.source == rank_)
        send(transfer);
      else
        receive(transfer);
    }
    while (!under_way_.empty()) finish_oldest();
  }
  /// The failure of the first file that could not be read.
  const Status& status() const { return status_; }

 private:
  struct UnderWay {
    const Transfer* transfer;
    std::vector<std::byte> block;  // unused where bytes are received into the tensor itself
    Work work;                     // declared after the block, so that it ends before the block is freed
  };

  TensorView values_of(const Transfer& transfer) const { return tensors_[transfer.tensor].entry->values; }

  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  void read(const Transfer& transfer, std::span<std::byte> to) {
    auto it = files_.find(transfer.file);
    if (it == files_.end())
      it =
          files_
              .emplace(transfer.file, File::open(found_.folder / file_name(static_cast<std::size_t>(transfer.file), found_.seen_by.size())))
              .first;
    it->second.read(transfer.file_offset, to);
  }

  void read_own(const Transfer& transfer) {
    const TensorView values = values_of(transfer);
    if (values.contiguous()) return read(transfer, {values.data() + transfer.tensor_offset, transfer.bytes});
    std::vector<std::byte> block(transfer.bytes);
    read(transfer, block);
    scatter(block, values, transfer.tensor_offset);
  }

  UnderWay& begin(const Transfer& transfer) {
    if (under_way_.size() == kInFlight) finish_oldest();
    return under_way_.emplace_back(UnderWay{&transfer, {}, {}});
  }

  // A block that cannot be read is sent all the same, because the receiver waits for it. The receiver is told of the failure at the end.
  void send(const Transfer& transfer) {
    UnderWay& next = begin(transfer);
    next.block.resize(transfer.bytes);
    note(attempt([&] { read(transfer, next.block); }));
    next.work =
        exchange_.group().send_async(ConstTensorView(next.block.data(), DType::u8, transfer.bytes), transfer.target, exchange_.call());
  }

  void receive(const Transfer& transfer) {
    UnderWay& next = begin(transfer);
    const TensorView values = values_of(transfer);
    if (!values.contiguous()) next.block.resize(transfer.bytes);
    std::byte* place = values.contiguous() ? values.data() + transfer.tensor_offset : next.block.data();
    next.work = exchange_.group().recv_async(TensorView(place, DType::u8, transfer.bytes), transfer.source, exchange_.call());
  }

  void finish_oldest() {
    UnderWay& oldest = under_way_.front();
    oldest.work.wait();
    if (oldest.transfer->target == rank_ && !oldest.block.empty())
      scatter(oldest.block, values_of(*oldest.transfer), oldest.transfer->tensor_offset);
    under_way_.pop_front();
  }

  const Exchange& exchange_;
  const std::vector<GroupTensor>& tensors_;
  const Found& found_;
  const int rank_;
  Status status_;
  std::map<int, File> files_;
  std::deque<UnderWay> under_way_;
};

}  // namespace

void move(const Exchange& exchange, const std::vector<Transfer>& transfers, const std::vector<GroupTensor>& tensors, const Found& found) {
  Mover mover(exchange, tensors, found);
  mover.run(transfers);
  exchange.require_ok(mover.status());
}

}  // namespace ringlet::native
