#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/group_engine.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Changes the speeds by which the group of all ranks divides its buffers, while operations run, on all ranks before the same operation of
/// each stream. Rank 0 asks all others, who start no operation of that group from then on and say which they have started; the change
/// begins, in each stream, with the first operation that no rank has started. So a change costs one round trip in which nothing starts, and
/// a world that fails in it has lost nothing: the next epoch begins with what the ranks knew when they met. Other groups keep the speeds
/// with which they were formed. Belongs to the loop's thread.
class PartsSwitch {
 public:
  /// Rank 0 takes the question back when an answer takes longer, as that of a browser which computes. It waits twice as long the next time,
  /// since answers come behind what slow links have queued.
  static constexpr Duration kPatience = Duration::seconds(1), kLongestPatience = Duration::seconds(8);
  using RatesHandler = std::function<void(int rank, const wire::LinkRates& rates)>;

  explicit PartsSwitch(GroupHost& host) : host_(host) {}

  void set_group(GroupEngine& group) { group_ = &group; }
  /// This rank leaves the group.
  void forget(const GroupEngine& group);
  /// Is given what native ranks tell rank 0 of their links.
  void set_rates_handler(RatesHandler handler) { rates_handler_ = std::move(handler); }

  /// The speeds of all ranks that operations have from now on, on this rank.
  std::vector<std::uint32_t> in_use() const;
  /// Of the epoch before: rank 0 may change to them.
  ///@{
  const std::vector<std::uint32_t>& inherited() const { return inherited_; }
  void inherit(std::vector<std::uint32_t> speeds) { inherited_ = std::move(speeds); }
  ///@}
  /// Begins a change, on rank 0 alone; `done` runs once, from the loop, when it has taken effect or was taken back, unless the world fails
  /// first. Returns false where one is under way, a rank has left,
  /// or too many are kept for operations that have not started.
  bool change(const std::vector<std::uint32_t>& speeds, std::function<void(bool changed)> done);

  /// Returns false where the message is not one of these. `counts` says that the world is well and the rank has begun this epoch.
  bool on_message(int from, const wire::ControlMessage& message, bool counts);
  void on_left(int rank);
  void on_tick(Instant now);

 private:
  void on_question(int from, const wire::PartsQuestion& question);
  void on_answer(int from, const wire::PartsAnswer& answer);
  void on_change(int from, const wire::PartsChange& change);
  void hold_back();
  void conclude(const std::vector<std::uint32_t>& speeds);
  bool take(const wire::PartsChange& change);
  void refuse(int from, const char* what);

  GroupHost& host_;
  GroupEngine* group_ = nullptr;  // null once this rank has left it
  RatesHandler rates_handler_;
  std::vector<std::uint32_t> inherited_;
  std::uint32_t number_ = 0;           // of the last question
  std::optional<Instant> held_since_;  // a question is open
  std::vector<std::uint32_t> wanted_;  // on rank 0, while a question is open
  std::vector<std::uint64_t> first_;   // the same, by stream
  std::vector<bool> answered_;         // the same, by rank
  std::function<void(bool changed)> done_;
  Duration patience_ = kPatience;
};

}  // namespace ringlet
