#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#ifdef __SANITIZE_THREAD__
// libuv closes its epoll descriptor by a system call that the sanitizer does not see: a directory that gets the same number, and is closed by
// another thread, looks like a race with it.
extern "C" const char* __tsan_default_suppressions() { return "race:closedir\n"; }
#endif
