#include "native/own_process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string>

#include "core/base/refuse.hpp"

namespace ringlet::native {

namespace {

std::atomic<std::uint32_t> forks{0};

}  // namespace

void run_at_exit(void (*function)()) {
  if (std::atexit(function) != 0) throw std::bad_alloc();
}

void run_after_fork(void (*function)()) {
  if (::pthread_atfork(nullptr, nullptr, function) != 0) throw std::bad_alloc();
}

std::uint32_t count_forks() {
  [[maybe_unused]] static const bool watches = (run_after_fork([] { ++forks; }), true);
  return forks.load(std::memory_order_relaxed);
}

OwnProcess::OwnProcess() : forks_(count_forks()), pid_(::getpid()) {}

bool OwnProcess::is_here() const noexcept { return forks.load(std::memory_order_relaxed) == forks_; }

void OwnProcess::refuse_forked() const {
  refuse("this process (pid " + std::to_string(::getpid()) + ") was forked from the one that the group belongs to (pid " +
         std::to_string(pid_) + "), and cannot use it; it may free it, and form groups of its own by init()");
}

}  // namespace ringlet::native
