#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/group_table.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Changes the speeds by which groups divide their buffers, while operations run, on all members of a group before the same operation of
/// each of its streams. Rank 0 asks all others, who start no operation of any group from then on and say which they have started; the
/// change begins, in each stream of each group, with the first operation that no member has started. So a change costs one round trip in
/// which nothing starts, and a world that fails in it has lost nothing: the next epoch begins with what the ranks knew when they met.
/// A group that is formed after a change, or while ranks agree on one, has all its operations by the speeds of the last change. Belongs to
/// the loop's thread.
class PartsSwitch {
 public:
  /// Rank 0 takes the question back when an answer takes longer, as that of a browser which computes. It waits twice as long the next time,
  /// since answers come behind what slow links have queued.
  static constexpr Duration kPatience = Duration::seconds(1), kLongestPatience = Duration::seconds(8);
  using RatesHandler = std::function<void(int rank, const wire::LinkRates& rates)>;

  PartsSwitch(GroupHost& host, const GroupTable& groups) : host_(host), groups_(groups) {}

  /// Whether the ranks agree on a change, so that no operation may start.
  bool is_open() const { return held_since_.has_value(); }
  /// Null where there was none.
  const wire::PartsChange* last_change() const { return last_ ? &*last_ : nullptr; }
  /// Is given what native ranks tell rank 0 of their links.
  void set_rates_handler(RatesHandler handler) { rates_handler_ = std::move(handler); }

  /// The speeds of all ranks that operations have from now on, on this rank.
  std::vector<std::uint32_t> in_use() const;
  /// Of the epoch before, as long as nothing has changed in this one: rank 0 may change to them. Empty where there are none.
  ///@{
  const std::vector<std::uint32_t>& inherited() const { return inherited_; }
  void inherit(std::vector<std::uint32_t> speeds) { inherited_ = std::move(speeds); }
  /// For the next epoch.
  std::vector<std::uint32_t> to_inherit() const { return inherited_.empty() ? in_use() : inherited_; }
  ///@}
  /// Begins a change, on rank 0 alone; `done` runs once, from the loop, when it has taken effect or was taken back, unless the world fails
  /// first. Returns false where one is under way, or a rank has left.
  bool change(const std::vector<std::uint32_t>& speeds, std::function<void(bool changed)> done);

  /// Returns false where the message is not one of these. `counts` says that the world is well and the rank has begun this epoch.
  bool on_message(int from, const wire::ControlMessage& message, bool counts);
  void on_left(int rank);
  void on_tick(Instant now);

 private:
  void on_question(int from, const wire::PartsQuestion& question);
  void on_answer(int from, const wire::PartsAnswer& answer);
  void on_change(int from, const wire::PartsChange& change);
  bool has_room() const;
  wire::PartsAnswer own_answer() const;
  void conclude(const std::vector<std::uint32_t>& speeds);
  bool take(const wire::PartsChange& change);
  void refuse(int from, const char* what);

  GroupHost& host_;
  const GroupTable& groups_;
  RatesHandler rates_handler_;
  std::vector<std::uint32_t> inherited_;
  std::optional<wire::PartsChange> last_;
  std::uint32_t number_ = 0;           // of the last question
  std::optional<Instant> held_since_;  // a question is open
  // On rank 0, while a question is open: the speeds, what all answers so far say, by Membership::key, and which ranks have answered.
  std::vector<std::uint32_t> wanted_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> first_;
  std::vector<bool> answered_;
  std::function<void(bool changed)> done_;
  // Rank 0's part. change() sets them, so that a browser, which never is rank 0, does not load that part.
  void (PartsSwitch::*take_answer_)(int from, const wire::PartsAnswer& answer) = nullptr;
  void (PartsSwitch::*conclude_)(const std::vector<std::uint32_t>& speeds) = nullptr;
  Duration patience_ = kPatience;
};

}  // namespace ringlet
