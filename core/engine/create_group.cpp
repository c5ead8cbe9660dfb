#include "core/engine/create_group.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/refuse.hpp"

namespace ringlet {

namespace {

constexpr std::uint64_t kNoFreeNumber = UINT64_MAX;

/// What a member tells each other one: its own number of the new group, what it takes for its members, and its Membership::Member::serial;
/// then whether it has the group.
using MemberEntry = std::array<std::uint64_t, 3>;
using MemberWord = std::array<std::uint64_t, 1>;

std::uint64_t hash_of_ranks(const std::vector<int>& ranks) {
  return hash_of({reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof(int)});
}

/// One creation under way; the completions of its messages share it.
class Creation : public std::enable_shared_from_this<Creation> {
 public:
  Creation(GroupTable& table, GroupHost& host, GroupEngine& parent, CreateTask task)
      : table_(table), host_(host), parent_(parent), task_(std::move(task)), entries_(task_.ranks.size()), words_(task_.ranks.size()) {
    number_ = table_.reserve();
    own_ = static_cast<std::size_t>(std::find(task_.ranks.begin(), task_.ranks.end(), parent_.options().rank) - task_.ranks.begin());
    entries_[own_] = {number_ ? *number_ : kNoFreeNumber, hash_of_ranks(task_.ranks), number_ ? table_.serial(*number_) : 0};
    words_[own_] = {1};
  }

  void begin() {
    exchange(entries_, [this] {
      create();
      if (!host_.failure().ok()) return end();
      exchange(words_, [this] { end(); });
    });
  }

 private:
  /// Sends this rank's value to all other members, and takes theirs.
  template <class Value>
  void exchange(std::vector<Value>& values, std::function<void()> then) {
    open_ = 2 * (task_.ranks.size() - 1);
    then_ = std::move(then);
    if (open_ == 0) return host_.loop().defer([self = shared_from_this()] { std::exchange(self->then_, nullptr)(); });
    for (std::size_t member = 0; member < task_.ranks.size(); ++member) {
      if (member == own_) continue;
      const MessageShape shape{DType::u64, Shape{static_cast<std::int64_t>(values[member].size())}};
      const auto bytes = std::as_writable_bytes(std::span(values[member]));
      const auto on_end = [self = shared_from_this()](const Status& status) { self->on_message(status); };
      const auto stream = static_cast<std::uint16_t>(GroupEngine::kFirstCreationStream + task_.tag);
      parent_.receive(stream, {task_.ranks[member], shape, {}, bytes, task_.timeout, on_end});
      parent_.send(stream, {task_.ranks[member], shape, std::as_bytes(std::span(values[own_])), {}, task_.timeout, on_end});
    }
  }

  void on_message(const Status& status) {
    if (outcome_.ok()) outcome_ = status;
    if (--open_ == 0) std::exchange(then_, nullptr)();
  }

  void create() {
    if (outcome_.ok()) outcome_ = find_refusal();
    words_[own_][0] = outcome_.ok() ? 1 : 0;
    if (!outcome_.ok()) return;
    std::vector<Membership::Member> members;
    for (std::size_t member = 0; member < task_.ranks.size(); ++member)
      members.push_back({parent_.members().world_rank(task_.ranks[member]), static_cast<std::uint32_t>(entries_[member][0]),
                         static_cast<std::uint32_t>(entries_[member][2])});
    made_ = &table_.create(*std::exchange(number_, std::nullopt), {std::move(members), host_.options().size}, static_cast<int>(own_));
  }

  Status find_refusal() const {
    for (std::size_t member = 0; member < task_.ranks.size(); ++member) {
      const int rank = parent_.members().world_rank(task_.ranks[member]);
      const std::string name = parent_.members().name_of(task_.ranks[member]);
      if (entries_[member][1] != entries_[own_][1])
        return {Errc::mismatch, "create: " + name + " names other ranks for the group with tag " + std::to_string(task_.tag), rank};
      if (entries_[member][0] >= host_.options().max_groups)
        return invalid("create: " + name + " is in " + std::to_string(host_.options().max_groups) +
                       " groups, the most there may be; a group counts until all its ranks have let go of it");
    }
    return {};
  }

  void end() {
    if (outcome_.ok()) outcome_ = host_.failure();
    for (std::size_t member = 0; member < task_.ranks.size() && outcome_.ok(); ++member)
      if (words_[member][0] != 1)
        outcome_ = {
            Errc::mismatch,
            "create: " + parent_.members().name_of(task_.ranks[member]) + " could not form the group with tag " + std::to_string(task_.tag),
            parent_.members().world_rank(task_.ranks[member])};
    if (number_) table_.release(*number_);
    if (!outcome_.ok() && made_ != nullptr) table_.discard(*std::exchange(made_, nullptr));
    task_.completion(outcome_, made_);
  }

  GroupTable& table_;
  GroupHost& host_;
  GroupEngine& parent_;
  CreateTask task_;
  std::size_t own_ = 0;  // this rank's place among the members
  std::vector<MemberEntry> entries_;
  std::vector<MemberWord> words_;
  std::optional<std::uint32_t> number_;  // reserved, not used yet
  std::size_t open_ = 0;                 // messages under way
  std::function<void()> then_;
  Status outcome_;
  GroupEngine* made_ = nullptr;
};

}  // namespace

Status check_creation(const std::vector<int>& ranks, int tag, const WorldOptions& parent) {
  if (tag < 0 || tag >= GroupEngine::kCreationTags)
    return invalid("create: the tag is " + std::to_string(tag) + "; it must be 0 to " + std::to_string(GroupEngine::kCreationTags - 1));
  std::vector<bool> seen(static_cast<std::size_t>(parent.size));
  for (const int rank : ranks) {
    if (rank < 0 || rank >= parent.size)
      return invalid("create: there is no rank " + std::to_string(rank) + " in a group of " + std::to_string(parent.size));
    if (seen[static_cast<std::size_t>(rank)]) return invalid("create: rank " + std::to_string(rank) + " is named twice");
    seen[static_cast<std::size_t>(rank)] = true;
  }
  if (!seen[static_cast<std::size_t>(parent.rank)])
    return invalid("create: rank " + std::to_string(parent.rank) + ", which calls, is not among the ranks; only members call it");
  return {};
}

void create_group(GroupTable& table, GroupHost& host, GroupEngine& parent, CreateTask task) {
  std::make_shared<Creation>(table, host, parent, std::move(task))->begin();
}

}  // namespace ringlet
