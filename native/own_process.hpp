#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ringlet::native {

/// How often this process and those that it comes from were forked since the first call in the first of them. Throws `std::bad_alloc`.
std::uint32_t count_forks();

/// Has `function` run when a process ends that comes from this one. Throws `std::bad_alloc`.
void run_at_exit(void (*function)());
/// Has `function` run in each process that is forked from this one or comes from it. Throws `std::bad_alloc`.
void run_after_fork(void (*function)());

/// Remembers the process in which it was made. In a process that was forked from that one there are none of its threads, a lock may be held
/// for ever, and the sockets are still the other's. Any thread.
class OwnProcess {
 public:
  OwnProcess();
  /// Whether this is still the process in which it was made.
  bool is_here() const noexcept;
  /// Throws `InvalidArgument` with both processes where it is not.
  void check() const {
    if (!is_here()) refuse_forked();
  }

 private:
  [[noreturn]] void refuse_forked() const;

  const std::uint32_t forks_;
  const int pid_;
};

/// An object of which each process has one: a forked one makes its own at the first use. It is never destroyed. Any thread.
template <class T>
class PerProcess {
 public:
  T& get() {
    const std::uint32_t forks = count_forks();
    Node* node = current_.load();
    while (node == nullptr || node->forks != forks) {
      auto* made = new Node{forks, node, {}};
      if (current_.compare_exchange_strong(node, made)) return made->value;
      delete made;
    }
    return node->value;
  }

 private:
  struct Node {
    const std::uint32_t forks;
    Node* const before;  // what was inherited stays as it is
    T value;
  };
  std::atomic<Node*> current_{nullptr};
};

}  // namespace ringlet::native
