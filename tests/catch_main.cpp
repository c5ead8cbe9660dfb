#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#ifdef __SANITIZE_THREAD__
// libuv closes its descriptors by a system call that the sanitizer does not see. A descriptor of another thread that gets the same number
// then looks like a race with the calls that made and used libuv's. A name may be in either stack of a report.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:epoll_\nrace:eventfd\nrace:uv_pipe\nrace:accept_stream_socket\nrace:closedir\n";
}
#endif
