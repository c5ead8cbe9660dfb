#pragma once

#include <ringlet/c/group.h>

#include <ringlet/group.hpp>

struct ringlet_group {
  ringlet::Group value;
};

struct ringlet_work {
  ringlet::Work value;
};
