#pragma once

#include <cstddef>
#include <cstdint>

/// Marks a function with C linkage that JavaScript calls as `Module._name`.
#define RINGLET_EXPORT extern "C" __attribute__((used, visibility("default")))
