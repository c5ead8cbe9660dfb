#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/time.hpp"

namespace ringlet::sim {

enum class EventKind : std::uint8_t {
  timer,
  deferred,
  pull,
  deliver,
  transmit,
  arrive,
  reset,
  accept,
  dial_arrive,
  dial_done,
  dial_timeout
};

struct Event {
  Instant at;
  std::uint64_t order = 0;  // number in the order of scheduling, which decides between equal instants
  std::uint32_t index = 0;  // of the timer, node, connection or dial
  std::uint32_t generation = 0;
  EventKind kind = EventKind::timer;
  std::uint8_t side = 0;  // of a connection
};

/// A heap: the earliest event comes first, and equal instants come in the order in which they were scheduled.
class EventQueue {
 public:
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const Event& top() const { return events_.front(); }

  void push(Event event) {
    event.order = next_order_++;
    events_.push_back(event);
    std::push_heap(events_.begin(), events_.end(), later);
  }
  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), later);
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }
  template <class Predicate>
  void remove_if(Predicate predicate) {
    std::erase_if(events_, predicate);
    std::make_heap(events_.begin(), events_.end(), later);
  }

 private:
  static bool later(const Event& left, const Event& right) { return left.at != right.at ? left.at > right.at : left.order > right.order; }

  std::vector<Event> events_;
  std::uint64_t next_order_ = 0;
};

}  // namespace ringlet::sim
