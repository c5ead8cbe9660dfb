#pragma once

#include <time.h>

#include <chrono>

namespace ringlet::test {

/// Lets less than a second pass, in tests whose moments are random on purpose, or that ask again and again.
inline void pass(std::chrono::microseconds time) {
  const timespec wait{0, static_cast<long>(time.count() * 1000)};
  ::nanosleep(&wait, nullptr);
}

}  // namespace ringlet::test
