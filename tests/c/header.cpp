#include <ringlet/ringlet.h>

static_assert(RINGLET_OK == 0);
