#pragma once

#include <memory>

namespace ringlet::native {

class NativeWorld;

/// The worlds of this process that have met the others, which are left when the process ends. Any thread.
///@{
void add_open_world(NativeWorld& world);
void remove_open_world(NativeWorld& world);
///@}

/// For what a forked process has inherited: its destructors would wait for threads that are not here, and close what is the other's.
void keep_for_ever(std::shared_ptr<void> inherited);

}  // namespace ringlet::native
