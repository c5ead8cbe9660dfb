#pragma once

#include <sys/mman.h>

#include <new>

namespace ringlet::test {

/// A value that this process shares with those that it forks. All its bytes begin as zero.
template <class T>
class SharedByProcesses {
 public:
  SharedByProcesses() : memory_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedByProcesses() { ::munmap(memory_, sizeof(T)); }
  SharedByProcesses(const SharedByProcesses&) = delete;
  SharedByProcesses& operator=(const SharedByProcesses&) = delete;

  T& operator*() { return *static_cast<T*>(memory_); }
  T* operator->() { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

}  // namespace ringlet::test
