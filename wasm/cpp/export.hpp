#pragma once

#include <cstddef>
#include <cstdint>

/// Before a function with C linkage that JavaScript is to see as `Module._name`.
#define RINGLET_EXPORT extern "C" __attribute__((used, visibility("default")))
