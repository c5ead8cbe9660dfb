#include "core/engine/split.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "core/engine/requests.hpp"

namespace ringlet {

namespace {

/// What each rank contributes: its colour, its key, its own number of the new group, and its Membership::Member::serial.
using Entry = std::array<std::int32_t, 4>;
constexpr std::int32_t kNoNumber = -1;

/// One split under way; the completions of its collectives share it.
class Split {
 public:
  Split(GroupTable& table, GroupHost& host, GroupEngine& parent, SplitTask task)
      : table_(table), host_(host), parent_(parent), task_(std::move(task)), all_(static_cast<std::size_t>(parent.options().size)) {
    if (task_.color >= 0) number_ = table_.reserve();
    own_ = {task_.color, task_.key, number_ ? static_cast<std::int32_t>(*number_) : kNoNumber,
            number_ ? static_cast<std::int32_t>(table_.serial(*number_)) : 0};
  }

  ConstTensorView own() const { return {own_.data(), DType::i32, own_.size()}; }
  TensorView all() { return {all_.data(), DType::i32, all_.size() * own_.size()}; }

  void on_gathered() {
    refusal_ = find_refusal();
    if (!refusal_.ok() || task_.color < 0) return;
    const std::vector<int> ranks = ranks_of_color();
    std::vector<Membership::Member> members;
    for (const int rank : ranks) {
      const Entry& entry = all_[static_cast<std::size_t>(rank)];
      members.push_back({parent_.members().world_rank(rank), static_cast<std::uint32_t>(entry[2]), static_cast<std::uint32_t>(entry[3])});
    }
    const auto own_place = std::find(ranks.begin(), ranks.end(), parent_.options().rank) - ranks.begin();
    made_ = &table_.create(*std::exchange(number_, std::nullopt), {std::move(members), host_.options().size}, static_cast<int>(own_place));
  }

  void on_all_have_it(const Status& status) {
    const Status& outcome = status.ok() ? refusal_ : status;
    if (number_) table_.release(*number_);
    if (!outcome.ok() && made_ != nullptr) table_.discard(*std::exchange(made_, nullptr));
    task_.completion(outcome, made_);
  }

 private:
  Status find_refusal() const {
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      if (all_[rank][0] < 0 || all_[rank][2] != kNoNumber) continue;
      return {Errc::invalid_argument,
              "split: " + parent_.members().name_of(static_cast<int>(rank)) + " is in " + std::to_string(host_.options().max_groups) +
                  " groups, the most there may be; a group counts until all its ranks have let go of it",
              parent_.members().world_rank(static_cast<int>(rank))};
    }
    return {};
  }

  std::vector<int> ranks_of_color() const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < all_.size(); ++rank)
      if (all_[rank][0] == task_.color) ranks.push_back(static_cast<int>(rank));
    const auto key_of = [&](int rank) {
      const std::int32_t key = all_[static_cast<std::size_t>(rank)][1];
      return key < 0 ? rank : key;
    };
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
    return ranks;
  }

  GroupTable& table_;
  GroupHost& host_;
  GroupEngine& parent_;
  SplitTask task_;
  Entry own_{};
  std::vector<Entry> all_;               // by rank in the parent
  std::optional<std::uint32_t> number_;  // reserved, not used yet
  Status refusal_;
  GroupEngine* made_ = nullptr;
};

}  // namespace

void split_group(GroupTable& table, GroupHost& host, GroupEngine& parent, std::uint16_t stream, SplitTask task) {
  const Duration timeout = task.timeout;
  const auto split = std::make_shared<Split>(table, host, parent, std::move(task));
  CollectiveTask gather = for_purpose(Purpose::split, make_all_gather(split->own(), split->all(), parent.options())).value();
  gather.timeout = timeout;
  gather.completion = [split](const Status& status) {
    if (status.ok()) split->on_gathered();
  };
  // Both are started at once, so that nothing comes between them in the stream. The gathering's completion runs before the barrier begins
  // here.
  CollectiveTask barrier = for_purpose(Purpose::split, make_barrier(parent.options())).value();
  barrier.timeout = timeout;
  barrier.completion = [split](const Status& status) { split->on_all_have_it(status); };
  parent.start(stream, std::move(gather));
  parent.start(stream, std::move(barrier));
}

}  // namespace ringlet
