#pragma once

#include <functional>
#include <list>

namespace ringlet::native {

using Calls = std::list<std::function<void()>>;

/// Starts the one thread of this process that runs call-backs of programs, where it does not run yet; it goes on to the end of the process.
/// Any thread. Throws where the system refuses the thread.
void start_dispatcher();
/// Gives it calls, which may not throw, and which it runs one after the other. Any thread; it has to be started. Throws nothing.
void dispatch(Calls calls) noexcept;

}  // namespace ringlet::native
